"""Payload files that a running session maps, compared before and after each run."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from ctx_formats.errors import FileChangedError
from ort_lite.context.hints import refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctx_formats.mapped_file import MappedFile


class WatchedFiles:
    """Mapped files, each kept open; `close` lets go of them.

    Compared are size and mtime: a new link or mode, which changes the ctime alone, must not stop
    a session. Looking takes 2.5 microseconds.
    """

    def __init__(self, files: Iterable[MappedFile]) -> None:
        """`files` are open, and may be closed afterwards.

        Raises:
            OSError: No descriptors are left.
        """
        self._files: list[tuple[int, MappedFile]] = []
        self._close = weakref.finalize(self, _close_all, self._files)
        for file in files:
            self._files.append((file.duplicate(), file))

    def require_unchanged(self) -> None:
        """Compare each file with its state when it was opened.

        Raises:
            InvalidGraph: Reason integrity; another process has written to a file.
        """
        for descriptor, file in self._files:
            info, stamp = os.fstat(descriptor), file.stamp
            is_same = info.st_size == stamp.size and info.st_mtime_ns == stamp.mtime_ns
            if not is_same and not file.is_detached:
                raise refusal_of(FileChangedError(file.path, "under a running session"), "", None)

    def close(self) -> None:
        """Close the files; calling it twice does nothing."""
        self._close()


def _close_all(files: list[tuple[int, MappedFile]]) -> None:
    for descriptor, _ in files:
        os.close(descriptor)
    files.clear()

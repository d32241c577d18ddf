"""Files and folders that are gone when whoever makes them is done, or is stopped."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_paths: set[str] = set()


def note_unfinished(path: str | os.PathLike[str]) -> None:
    """Remember a temporary file or folder of this process."""
    _paths.add(os.fspath(path))


def forget_unfinished(path: str | os.PathLike[str]) -> None:
    """Forget one that is removed, or has its name."""
    _paths.discard(os.fspath(path))


@contextmanager
def temporary_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> Iterator[str]:
    """A folder of this user's for temporary files, removed at the end.

    Args:
        prefix: How its name begins.
        parent: Where it is made; None for the system's folder of temporary files.

    Raises:
        OSError: There is no place for one; TMPDIR names it.
    """
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - lazy: reload

    with TemporaryDirectory(prefix=prefix, dir=parent) as folder:
        note_unfinished(folder)
        try:
            yield folder
        finally:
            forget_unfinished(folder)


def remove_unfinished() -> None:
    """Remove what there is now, for a process that is about to end in the middle of it."""
    from shutil import rmtree  # noqa: PLC0415 - lazy: reload

    for path in map(Path, list(_paths)):
        with suppress(OSError):
            if path.is_dir():
                rmtree(path)
            else:
                path.unlink()

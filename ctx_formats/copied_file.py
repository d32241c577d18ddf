"""A payload file's bytes in memory of this process, which no other process changes.

docs/adr/0033-copied-payloads.md says which files are copied, and what that costs.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from ctx_formats.errors import FileChangedError, HasWriterError
from ctx_formats.mapped_file import FileStamp, MappedFile, path_of_descriptor
from ctx_formats.stamped_file import StampedFile, private_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_formats.mapped_file import PathLike
    from ctx_formats.sealed_file import LentPath

COPY_LIMIT = 16 << 20
"""Bytes up to which `open_file` copies a file, unless it is given another size."""

ATTEMPTS = 5


def open_file(
    path: PathLike, *, copy_limit: int = COPY_LIMIT, follow_symlink: bool = True
) -> MappedFile | CopiedFile:
    """Copy a file of at most `copy_limit` bytes, map a larger one and keep it open.

    A map is copied, too, as soon as somebody is about to write to the file, where the system can
    tell (`MappedFile.copy_before_writes`); a file that is open for writing is copied at once.
    With a `copy_limit` of 0 nothing is ever copied.

    Raises:
        FormatError: As `MappedFile` and `CopiedFile`.
        OSError: No descriptors or no memory are left.
        MemoryError: There is not enough memory for a copy.
    """
    try:
        large = os.stat(path, follow_symlinks=follow_symlink).st_size > copy_limit
    except (OSError, ValueError):
        large = False  # opening it says what is wrong
    if large:
        mapped = _map_file(path, copy_limit, follow_symlink=follow_symlink)
        if mapped is not None:
            return mapped
    return CopiedFile(path, follow_symlink=follow_symlink)


def _map_file(path: PathLike, copy_limit: int, *, follow_symlink: bool) -> MappedFile | None:
    """A map; None if the file is being written to, or grew or shrank meanwhile."""
    file = MappedFile(path, follow_symlink=follow_symlink, keep_open=True)
    try:
        if copy_limit:
            file.copy_before_writes()
    except (HasWriterError, FileChangedError):
        file.close()
        return None
    except BaseException:
        file.close()
        raise
    return file


class CopiedFile:
    """A file's bytes as they were at one instant; used as a MappedFile is.

    Attributes:
        view: All bytes, in writable memory that goes with its last view.
        stamp: Of the version that was copied.
    """

    def __init__(self, path: PathLike, *, follow_symlink: bool = True) -> None:
        """Open, copy and close; a file that changes meanwhile is copied again.

        Args:
            path: The file.
            follow_symlink: As for `MappedFile`.

        Raises:
            FormatError: As `MappedFile`.
            FileChangedError: Somebody writes to the file for as long as it is being copied.
            OSError: No descriptors are left.
            MemoryError: There is not enough memory.
        """
        self.path = path
        self._sealed: int | None = None
        self._is_named_itself = False
        for attempt in range(ATTEMPTS):
            with StampedFile(path, follow_symlink=follow_symlink) as file:
                self.stamp = file.stamp
                self.view = private_memory(file.stamp.size)
                try:
                    file.read_into(self.view, 0)
                    file.require_unchanged()
                except FileChangedError:
                    if attempt == ATTEMPTS - 1:
                        raise
                else:
                    return

    @property
    def reopen_path(self) -> str:
        """A path under which this process finds the copy: a sealed file in memory.

        Where the system has none of these (other than Linux), the path of the file itself.

        Raises:
            OSError: There are no descriptors or no memory left.
        """
        if self._sealed is None:
            from ctx_formats.sealed_file import sealed_file  # noqa: PLC0415 - lazy: rare

            self._sealed = sealed_file(self.view)
        if self._sealed is None:
            self._is_named_itself = True
            return str(self.path)
        return path_of_descriptor(self._sealed, self.path)

    @contextmanager
    def lend_path(self) -> Iterator[LentPath]:
        """`reopened_as`, for an SDK that maps the file itself.

        Raises:
            OSError: As `reopened_as`.
        """
        from ctx_formats.sealed_file import LentPath  # noqa: PLC0415 - lazy: rare

        yield LentPath(self.reopen_path)

    def require_unchanged(self) -> None:
        """Nothing, unless `reopened_as` is the file itself: then as `MappedFile`.

        Raises:
            FileChangedError: The file is no longer the one that was copied.
        """
        if not self._is_named_itself:
            return
        try:
            stamp = FileStamp.of(os.stat(self.path))
        except OSError as exc:
            raise FileChangedError(self.path, "while it was in use") from exc
        if stamp != self.stamp:
            raise FileChangedError(self.path, "while it was in use")

    def drop_pages(self, offset: int, size: int) -> None:
        """Nothing: there is nowhere to read the bytes from again."""

    def close(self) -> None:
        """Let go; the memory goes with its last view."""
        self.view = memoryview(b"")
        if self._sealed is not None:
            os.close(self._sealed)
            self._sealed = None

    def __enter__(self) -> Self:
        """Return this file."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the file."""
        self.close()

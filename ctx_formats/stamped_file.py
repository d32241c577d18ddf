"""An open regular file, read as it was at one instant although others may write to it.

Reading goes through the descriptor into memory of our own: a map would show what others write
later, and end the process (SIGBUS) where they cut the file short. Whether somebody wrote in the
meantime is detected by device, inode, size, mtime and ctime before and after.

One write() call changes the times once, when it begins, so that a reader may come and go within it
and see no change. Before a file that was written to lately is read, other processes are therefore
given time to close it. Where the system does not say who has a file open, and for writes through a
shared map, which change the times late, nothing is noticed.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from ctx_formats.errors import FileChangedError, FormatError
from ctx_formats.lean_dataclass import replace
from ctx_formats.mapped_file import FileStamp, open_descriptor, stamp_of

if TYPE_CHECKING:
    from ctx_formats.mapped_file import PathLike

LARGE_PAGES_FROM = 4 << 20
"""Bytes from which on large pages are asked for: 500 MB are read in 0.22 s where it took 0.30 s."""

STEP = 64 << 20
"""Bytes that are read at once; signals are handled in between."""

_COARSE_CLOCK = 5
"""CLOCK_REALTIME_COARSE of Linux, which file systems take their times from."""
_WAIT = 0.001
TICKS = 25
"""How often the clock's next tick is waited for."""
WRITERS = 1000
"""How often other processes that have a file open for writing are waited for."""
LATELY_NS = 10_000_000_000
_AHEAD_NS = 1_000_000_000
"""A time this far ahead is another machine's clock, which waiting does not reach."""


class StampedFile:
    """One version of a file, open for reading.

    Attributes:
        stamp: Of the version.
    """

    def __init__(self, path: PathLike, *, follow_symlink: bool = True) -> None:
        """Open, and wait until a write from now on would show in the file's times.

        Waiting is for files that were written to within the clock's present tick, 4 ms or so, or
        that another process has open for writing: a second at most.

        Args:
            path: The file.
            follow_symlink: Whether `path` itself may be a symlink.

        Raises:
            FormatError: As `MappedFile`.
        """
        self.path = path
        self._descriptor = open_descriptor(path, follow_symlink=follow_symlink)
        try:
            self.stamp = stamp_of(self._descriptor, path)
            self._is_told = self._wait_for_rest()
        except BaseException:
            self.close()
            raise

    def read_into(self, target: memoryview, offset: int) -> None:
        """Fill `target`, which holds zeros, with the bytes from `offset` on.

        Long holes of the file are skipped, and so take no memory.

        Raises:
            FileChangedError: The file ends before.
            FormatError: It cannot be read.
        """
        at = 0
        try:
            while at < len(target):
                if len(target) - at > STEP:
                    at = min(_next_data(self._descriptor, offset + at) - offset, len(target) - 1)
                count = _read_at(self._descriptor, target[at : at + STEP], offset + at)
                if not count:
                    raise FileChangedError(self.path)
                at += count
        except OSError as exc:
            raise FormatError(
                "path", f"cannot be read: {exc}", "a readable file", file=str(self.path)
            ) from exc

    def require_unchanged(self, *, in_place: bool = False) -> None:
        """Compare the file with what it was when it was opened.

        Args:
            in_place: Whether the path must lead to it still.

        Raises:
            FileChangedError: It was written to since, or it may have been and nothing tells.
        """
        try:
            info = os.fstat(self._descriptor)
            stamp = FileStamp.of(os.stat(self.path)) if in_place else None  # noqa: PTH116 - see safe_path
        except OSError as exc:
            raise FileChangedError(self.path) from exc
        if stamp not in (None, self.stamp):
            raise FileChangedError(self.path)
        now = FileStamp.of(info)
        # Losing its last name, to a rename for one, changes the ctime alone.
        same = now if info.st_nlink else replace(now, ctime_ns=self.stamp.ctime_ns)
        if same != self.stamp or not self._is_told:
            raise FileChangedError(self.path)

    def close(self) -> None:
        """Close the file; calling it twice does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Return this file."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the file."""
        self.close()

    def _wait_for_rest(self) -> bool:
        """Whether a write from now on gives the file other times than `stamp` has."""
        ticks, writers = TICKS, WRITERS
        while True:
            untold = _is_within_tick(self.stamp)
            if untold and ticks:
                ticks -= 1
            elif not untold and writers and _is_being_written(self._descriptor, self.stamp):
                writers -= 1
            else:
                # A writer may have finished between the stamp and the question about it.
                now = stamp_of(self._descriptor, self.path)
                if now == self.stamp or not ticks:
                    return not untold
                ticks -= 1
            time.sleep(_WAIT)
            self.stamp = stamp_of(self._descriptor, self.path)


def private_memory(size: int, *, sparse: bool = False) -> memoryview:
    """Writable zeros of this process alone, given back with the last view of them.

    Args:
        size: In bytes.
        sparse: Whether most of it is never touched, and takes no memory.

    Raises:
        MemoryError: The system does not give so much.
    """
    if size < mmap.PAGESIZE:
        return memoryview(bytearray(size))
    try:
        # Without ACCESS_COPY a forked process would share it.
        memory = mmap.mmap(-1, size, access=mmap.ACCESS_COPY)
    except (OSError, OverflowError) as exc:
        raise MemoryError(f"{size} bytes: {exc}") from exc
    if size >= LARGE_PAGES_FROM and not sparse and sys.platform == "linux":
        with suppress(OSError):  # a kernel without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


def _is_within_tick(stamp: FileStamp) -> bool:
    if sys.platform != "linux":
        return False  # APFS and NTFS take their times from a fine clock
    newest = max(stamp.mtime_ns, stamp.ctime_ns)
    return 0 <= newest - time.clock_gettime_ns(_COARSE_CLOCK) < _AHEAD_NS


def _is_being_written(descriptor: int, stamp: FileStamp) -> bool:
    if time.time_ns() - max(stamp.mtime_ns, stamp.ctime_ns) > LATELY_NS:
        return False
    if sys.platform == "linux":
        from ctx_formats.open_writers import is_open_elsewhere  # noqa: PLC0415 - lazy: reload

        return is_open_elsewhere(descriptor)
    else:
        return False


def _next_data(descriptor: int, offset: int) -> int:
    """Offset of the next byte at or after `offset` that is not in a hole."""
    if not hasattr(os, "SEEK_DATA"):
        return offset
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as exc:
        if exc.errno == errno.ENXIO:  # nothing but a hole follows
            return os.fstat(descriptor).st_size
        return offset  # a file system that knows no holes


def _read_at(descriptor: int, target: memoryview, offset: int) -> int:
    if sys.platform == "win32":
        os.lseek(descriptor, offset, os.SEEK_SET)
        data = os.read(descriptor, len(target))
        target[: len(data)] = data
        return len(data)
    else:
        return os.preadv(descriptor, [target], offset)

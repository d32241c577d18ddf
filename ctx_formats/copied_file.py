"""A file's bytes in memory of this process's own, where nobody else can change them.

Whatever another process writes into the file afterwards, or cuts off it, does not reach the copy.
Changes during the copying are noticed: by device, inode, size, mtime and ctime before and after,
and where these say too little, because the file was written to within the clock's last ticks, by
reading it a second time. docs/adr/0033-copied-payloads.md has the rule by size and its costs.
"""

from __future__ import annotations

import mmap
import os
import time
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.mapped_file import SHORTAGES, FileStamp, MappedFile, changed

if TYPE_CHECKING:
    from ctx_formats.mapped_file import PathLike

COPY_LIMIT = 256 << 20
"""Bytes up to which `open_file` copies a file, unless it is given another size."""

ATTEMPTS = 5
STEP = 64 << 20
"""Bytes that are read at once; signals are handled in between."""

COMPARED = 1 << 20
"""Bytes that are compared at once."""

TICK_NS = 20_000_000
"""Two ticks of the coarsest clock (10 ms) that local file systems take their times from."""


def open_file(
    path: PathLike,
    *,
    copy_limit: int = COPY_LIMIT,
    follow_symlink: bool = True,
    keep_open: bool = False,
) -> MappedFile:
    """Copy a file of at most `copy_limit` bytes, map a larger one.

    Raises:
        FormatError: As `MappedFile` and `CopiedFile`.
    """
    try:
        large = os.stat(path, follow_symlinks=follow_symlink).st_size > copy_limit
    except (OSError, ValueError):
        large = False  # opening it says what is wrong
    opened = MappedFile if large else CopiedFile
    return opened(path, follow_symlink=follow_symlink, keep_open=keep_open)


class CopiedFile(MappedFile):
    """A file's bytes as they were at one instant; used as a MappedFile is.

    With `keep_open` the copy is a sealed memory file where the system has these (Linux), and
    `reopened_as` is its path; elsewhere `reopened_as` is the path of the file itself.

    Raises:
        FormatError: As `MappedFile`; reason integrity where somebody writes to the file for as
            long as it is being copied.
    """

    def require_unchanged(self) -> None:
        """Nothing: the file may change."""

    def drop_pages(self, offset: int, size: int) -> None:
        """Nothing: there is nowhere to read the bytes from again."""

    def _opened_map(self, descriptor: int) -> mmap.mmap | None:
        target = _memory_file() if self._keep_open else None
        try:
            memory = self._snapshot(descriptor, target)
            if target is not None:
                _seal(target)
        except BaseException:
            if target is not None:
                os.close(target)
            raise
        if target is not None:
            self._close_descriptor()
            self._descriptor = target
        return memory

    def _snapshot(self, descriptor: int, target: int | None) -> mmap.mmap | None:
        """The bytes as they all were at once; in the memory file `target`, where one is given."""
        try:
            for _ in range(ATTEMPTS):
                began = time.time_ns()
                self.stamp = FileStamp.of(os.fstat(descriptor))
                if not self.stamp.size:
                    return None
                memory = _copy(descriptor, target, self.stamp.size)
                if memory is not None and self._is_snapshot(descriptor, memory, began):
                    return memory
        except OSError as exc:
            if exc.errno in SHORTAGES:
                raise
            expected = f"{self.stamp.size} bytes"
            raise FormatError(
                "path", f"cannot be read: {exc}", expected, file=str(self.path)
            ) from exc
        raise changed(self.path, f"while it was read, {ATTEMPTS} times in a row")

    def _is_snapshot(self, descriptor: int, memory: mmap.mmap, began: int) -> bool:
        """Whether nobody wrote to the file between the stamp and now."""
        info = os.fstat(descriptor)
        if not self._is_stamp_of(info):
            return False
        young = max(info.st_mtime_ns, info.st_ctime_ns) > began - TICK_NS
        return not young or _holds(descriptor, memory)


def _copy(descriptor: int, target: int | None, size: int) -> mmap.mmap | None:
    """The first `size` bytes of a file; None where it ends before."""
    if target is not None:
        complete = _send(descriptor, target, size)
        return mmap.mmap(target, size, access=mmap.ACCESS_COPY) if complete else None
    memory = _own_memory(size)
    return memory if _read_into(descriptor, memory) else None


def _own_memory(size: int) -> mmap.mmap:
    """Zeros of this process alone, in large pages where the system has some to spare."""
    memory = mmap.mmap(-1, size, access=mmap.ACCESS_COPY)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _read_into(descriptor: int, memory: mmap.mmap) -> bool:
    """Fill memory from the start of a file; whether the file has as many bytes."""
    with FileIO(descriptor, closefd=False) as file, memoryview(memory) as view:
        file.seek(0)
        at = 0
        while at < len(view):
            count = file.readinto(view[at : at + STEP])
            if not count:
                return False
            at += count
    return True


def _memory_file() -> int | None:
    """An empty file without a name that can be sealed; None where the system has none."""
    if not hasattr(os, "memfd_create"):
        return None
    return os.memfd_create("ort_lite", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def _send(descriptor: int, target: int, size: int) -> bool:
    """Make `target` the first `size` bytes of a file; whether the file has as many."""
    os.ftruncate(target, 0)
    os.lseek(target, 0, os.SEEK_SET)
    at = 0
    while at < size:
        count = os.sendfile(target, descriptor, at, min(size - at, STEP))
        if not count:
            return False
        at += count
    return True


def _seal(target: int) -> None:
    """Let nobody change the bytes or the size of a memory file, this process included."""
    import fcntl  # noqa: PLC0415 - few files are copied into one

    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(target, fcntl.F_ADD_SEALS, seals)


def _holds(descriptor: int, memory: mmap.mmap) -> bool:
    """Whether a file has the bytes of `memory` now."""
    with FileIO(descriptor, closefd=False) as file, memoryview(memory) as view:
        file.seek(0)
        at = 0
        while at < len(view):
            part = file.read(min(len(view) - at, COMPARED))
            if not part or part != bytes(view[at : at + len(part)]):
                return False
            at += len(part)
    return True

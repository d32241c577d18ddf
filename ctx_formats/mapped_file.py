"""A regular file, mapped copy-on-write, and the owner of its bytes.

A private map shows what other processes write into the file later, and reading past the end of a
file that was truncated since kills the process (SIGBUS). It suits files that nobody changes in
place; ctx_formats/copied_file.py has the bytes of the others.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from ctx_formats.errors import FileChangedError, FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from ctx_formats.sdk_maps import SdkMap
    from ctx_formats.sealed_file import LentPath

    class Lease(Protocol):
        """A `ctx_formats.write_lease.WriteLease`, which Linux alone has."""

        address: int
        is_copied: bool

        def drop_pages(self, start: int, size: int) -> None:
            """As `MappedFile.drop_pages`, for whole pages."""
            ...

        def hold_up_writers(self) -> bool:
            """Have writers wait for `let_writers_go`; False where the lease has ended already."""
            ...

        def let_writers_go(self) -> None:
            """Answer those that have come since `hold_up_writers`."""
            ...

        def cover(self, owner: object, known: set[SdkMap]) -> bool:
            """Have an SDK's maps copied, too; False where there are none that are not known."""
            ...

    PathLike = str | os.PathLike[str]

SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""They are the process's or the system's and say nothing about a file: left as OSError."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The metadata that distinguish versions of a file without reading it."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, info: os.stat_result) -> FileStamp:
        """The version that `os.stat` or `os.fstat` describes.

        On Windows from Python 3.12 on, st_ctime is the time of creation for `stat`, and that of
        the last change for `fstat`; st_birthtime is the time of creation for both.
        """
        ctime_ns = info.st_ctime_ns
        if sys.platform == "win32":
            ctime_ns = getattr(info, "st_birthtime_ns", ctime_ns)
        return cls(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, ctime_ns)


class MappedFile:
    """A file's bytes as a memoryview, for as long as somebody holds a part of it.

    The map is private and writable (ACCESS_COPY): OpenVINO refuses read-only memory, and what
    a reader writes by mistake never reaches the file. Pages that nobody writes stay shared.

    Attributes:
        view: All bytes; empty for an empty file.
        stamp: Of the file at the time it was opened.
    """

    def __init__(
        self, path: PathLike, *, follow_symlink: bool = True, keep_open: bool = False
    ) -> None:
        """Open and map the file.

        Args:
            path: The file.
            follow_symlink: Whether `path` itself may be a symlink. A path whose symlinks were
                followed and judged before has none; if it does, it was swapped since.
            keep_open: Whether `reopened_as`, `lend_path`, `require_unchanged` or `duplicate`
                will be asked for.

        Raises:
            FormatError: Reason missing_payload where nothing is there or it may not be read;
                unsafe_path where it is a folder, FIFO, socket or device, or a symlink that
                is not to be followed; format where it shrinks while it is opened.
            OSError: No descriptors or no memory are left.
        """
        self.path = path
        self._lease: Lease | None = None
        self._is_reopened = False
        self._descriptor: int | None = open_descriptor(path, follow_symlink=follow_symlink)
        try:
            self.stamp = stamp_of(self._descriptor, path)
            self._map = _map_file(self._descriptor, self.stamp.size, path)
        except BaseException:
            self._close_descriptor()
            raise
        if not keep_open:
            self._close_descriptor()
        self.view = memoryview(self._map) if self._map is not None else memoryview(b"")

    def copy_before_writes(self) -> None:
        """Have the map's memory copied at the moment somebody is about to write to the file.

        Linux alone can do so, for files of this user; see `ctx_formats.write_lease`.

        Raises:
            HasWriterError: Somebody has the file open for writing already.
            FileChangedError: Its size has changed since it was opened.
        """
        if self._map is None:
            return
        assert self._descriptor is not None, "opened with keep_open"
        if sys.platform == "linux":
            from ctx_formats.write_lease import take_lease  # noqa: PLC0415 - lazy: reload

            self._lease = take_lease(self._map, self._descriptor)
            if os.fstat(self._descriptor).st_size != self.stamp.size:
                raise FileChangedError(self.path, "while it was read")

    @property
    def is_detached(self) -> bool:
        """True once the memory is a copy: the file may change, and nobody here sees it."""
        return self._lease is not None and self._lease.is_copied and not self._is_reopened

    def require_unchanged(self) -> None:
        """Compare the file with what it was when it was opened, without reading it.

        A file that has lost its last name since counts as unchanged: replacing a file by rename
        changes the inode's ctime alone, and nobody can open it any more.

        Raises:
            FileChangedError: Somebody wrote to it or changed its size or times.
        """
        assert self._descriptor is not None, "opened with keep_open"
        if self.is_detached:
            return
        info = os.fstat(self._descriptor)
        now = FileStamp.of(info)
        same = now if info.st_nlink else replace(now, ctime_ns=self.stamp.ctime_ns)
        if same != self.stamp:
            raise FileChangedError(self.path, "while it was in use")

    def duplicate(self) -> int:
        """Another descriptor of the open file, which is the caller's to close."""
        assert self._descriptor is not None, "opened with keep_open"
        return os.dup(self._descriptor)

    @property
    def reopen_path(self) -> str:
        """A path under which this process finds this very file, whatever its name has become.

        Where the system has no such paths (/proc/self/fd), the path it was opened under.
        """
        assert self._descriptor is not None, "opened with keep_open"
        self._is_reopened = True  # what is mapped there sees every write
        return path_of_descriptor(self._descriptor, self.path)

    @contextmanager
    def lend_path(self) -> Iterator[LentPath]:
        """`reopened_as`, for an SDK whose maps of the file are copied before writes, too.

        For that the borrower names their owner, and the file must have a lease: writers then wait
        until the path is given back. A lease that has ended with a copy lends the copy.

        Raises:
            OSError: There are no descriptors or no memory left.
        """
        from ctx_formats.sealed_file import LentPath  # noqa: PLC0415 - lazy: rare

        if sys.platform == "linux":
            from ctx_formats.write_lease import one_import  # noqa: PLC0415 - lazy: reload

            with one_import(), self._lend_of_linux() as path:
                yield path
        else:
            yield LentPath(self.reopen_path)

    @contextmanager
    def _lend_of_linux(self) -> Iterator[LentPath]:
        from ctx_formats.sdk_maps import maps_beside  # noqa: PLC0415 - lazy: rare
        from ctx_formats.sealed_file import LentPath, sealed_file  # noqa: PLC0415 - lazy: rare

        lease = self._lease
        if lease is not None and lease.hold_up_writers():
            assert self._descriptor is not None, "opened with keep_open"
            try:
                known = maps_beside(lease.address)
                lent = LentPath(path_of_descriptor(self._descriptor, self.path))
                yield lent
                if lent.owner is None or not lease.cover(lent.owner, known):
                    self._is_reopened = True
            finally:
                lease.let_writers_go()
        elif self.is_detached and (sealed := sealed_file(self.view)) is not None:
            try:
                yield LentPath(path_of_descriptor(sealed, self.path))
            finally:
                os.close(sealed)
        else:
            yield LentPath(self.reopen_path)

    def drop_pages(self, offset: int, size: int) -> None:
        """Give memory behind a range back to the system, which reads it again when it is used.

        Only for ranges that nobody has written to: what was written there is lost.
        """
        start = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (offset + size) // mmap.PAGESIZE * mmap.PAGESIZE
        if sys.platform == "win32" or self._map is None or end <= start:
            return
        if self._lease is not None:
            self._lease.drop_pages(start, end - start)
        else:
            self._map.madvise(mmap.MADV_DONTNEED, start, end - start)

    def close(self) -> None:
        """Let go; the map itself ends when the last view of it does."""
        self._close_descriptor()
        self.view = memoryview(b"")
        self._map = None

    def _close_descriptor(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        """Return this file."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the file."""
        self.close()


def path_of_descriptor(descriptor: int, path: PathLike) -> str:
    """A path of an open file that stays valid if the file is renamed, on Linux; else `path`."""
    link = f"/proc/self/fd/{descriptor}"
    # Under Wine a program sees Linux' /proc, too, with Linux' descriptors.
    return link if os.name == "posix" and os.path.lexists(link) else str(path)


def stamp_of(descriptor: int, path: PathLike) -> FileStamp:
    """The version of an open file.

    Raises:
        FormatError: Reason unsafe_path; it is not a regular file.
    """
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        raise _refusal(_kind(info.st_mode), path)
    return FileStamp.of(info)


def open_descriptor(path: PathLike, *, follow_symlink: bool) -> int:
    """A descriptor of what is at a path, for reading, not inherited by child processes.

    O_NONBLOCK, because opening a FIFO that nobody writes to must not hang.

    Raises:
        FormatError: As `MappedFile`.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_BINARY", 0)
    if not follow_symlink:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, flags)
    except OSError as exc:
        if exc.errno in SHORTAGES:
            raise
        if exc.errno == errno.ELOOP:
            raise _refusal("a symlink", path) from exc
        if exc.errno == errno.ENXIO:
            raise _refusal("a socket", path) from exc
        known = exc.errno in (errno.ENOENT, errno.ENOTDIR)
        problem = "no such file" if known else os.strerror(exc.errno or 0)
        expected = _with_length("a readable file", path) if known else "a readable file"
        raise FormatError(
            "path", problem, expected, file=str(path), reason=Reason.MISSING_PAYLOAD
        ) from exc
    except ValueError as exc:  # an embedded NUL
        raise FormatError(
            "path", repr(str(path)), "no NUL", file="", reason=Reason.UNSAFE_PATH
        ) from exc


def _map_file(descriptor: int, size: int, path: PathLike) -> mmap.mmap | None:
    if not size:
        return None
    try:
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as exc:  # ValueError: shorter than it was a moment ago
        if isinstance(exc, OSError) and exc.errno in SHORTAGES:
            raise
        raise FormatError(
            "path", f"cannot be mapped: {exc}", f"{size} bytes", file=str(path)
        ) from exc


def _with_length(expected: str, path: PathLike) -> str:
    """`expected`, with a sentence about the path's length if Windows may have refused that."""
    from ctx_formats.long_path import explain_length  # noqa: PLC0415 - lazy: rare

    sentence = explain_length(path)
    return f"{expected}. {sentence}" if sentence else expected


def _refusal(actual: str, path: PathLike) -> FormatError:
    return FormatError("path", actual, "a regular file", file=str(path), reason=Reason.UNSAFE_PATH)


def _kind(mode: int) -> str:
    for test, name in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
    ):
        if test(mode):
            return name
    return "no regular file"

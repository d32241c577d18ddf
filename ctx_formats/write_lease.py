"""Copies a mapped file at the moment another process opens it for writing.

Linux can hold writers up: while a process has a read lease on a file, opening it for writing and
truncating it wait until the lease is given back (fcntl(2), "Leases"). A thread of this process is
notified, copies the map's pages into anonymous memory at the same addresses, and gives
the lease back. So a writer waits for as long as a copy takes, and whoever reads the map never sees
a byte of what it writes; memory of its own is needed only then. docs/adr/0033-copied-payloads.md.

A forked child has the maps but neither the thread nor the leases: it sees what is written later,
and compares the file instead. A copy that was under way in the parent is never finished in the
child, nor waited for.

Imported on Linux alone: other systems have no leases, and Windows has no fcntl.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import signal
import struct
import sys
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ctx_formats.errors import HasWriterError
from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.sdk_maps import SdkMaps, maps_beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_formats.sdk_maps import SdkMap

assert sys.platform == "linux", "elsewhere nobody imports it, and type checkers skip the rest"

SETOWN_EX, OWNER_TID = 15, 0
"""F_SETOWN_EX and F_OWNER_TID of Linux's fcntl.h, which Python's fcntl does not have."""

WAKE = signal.SIGURG
"""Ignored in every thread that does not wait for it."""

MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2
FAILED = ctypes.c_void_p(-1).value


@dataclass(eq=False, slots=True)
class WriteLease:
    """A read lease on a mapped file; it lasts until a writer comes, or the map ends.

    Attributes:
        is_held: No writer has come, and this process took it itself.
        is_copied: The memory of the map, and of the maps of SDKs that have owners, is a copy,
            which no other process changes.
    """

    descriptor: int
    address: int
    size: int
    memory: weakref.ref[mmap.mmap]
    is_held: bool = True
    is_copied: bool = False
    _imports: int = 0
    _sdk_maps: SdkMaps = field(default_factory=SdkMaps)

    def drop_pages(self, start: int, size: int) -> None:
        """Give memory behind whole pages of the map back, unless it is a copy or becomes one."""
        with _watcher.lock:
            memory = self.memory()
            if memory is not None and self.is_held:
                memory.madvise(mmap.MADV_DONTNEED, start, size)

    def hold_up_writers(self) -> bool:
        """Have writers wait for `let_writers_go`; False where the lease has ended already."""
        with _watcher.lock:
            self._imports += self.is_held
            return self.is_held

    def let_writers_go(self) -> None:
        """Answer those that have come since `hold_up_writers`."""
        with _watcher.lock:
            self._imports -= 1
        _watcher.answer_writers()

    def cover(self, owner: object, known: set[SdkMap]) -> bool:
        """Have maps of the file copied, too, that an SDK has made, for as long as `owner` lives.

        Args:
            owner: What the SDK has made of them.
            known: Maps that there were before. An SDK's new map in the place of one that ended
                in the meantime cannot be distinguished from it.

        Returns:
            Whether there are new maps.
        """
        made = maps_beside(self.address) - known
        with _watcher.lock:
            self._sdk_maps.add(owner, made)
        return bool(made)

    def is_to_end(self) -> bool:
        """Whether a writer waits for it, or had to wait for too long, and no import goes on."""
        return not self._imports and fcntl.fcntl(self.descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def copy(self) -> None:
        """Put a copy of the map in its place, all at once; the caller keeps the map alive.

        The same is then done with the maps that SDKs have of the file.

        Raises:
            OSError: There is no memory for it.
        """
        if os.fstat(self.descriptor).st_size < self.size:
            return  # the system has let the writer go on
        self._copy_own()
        self._sdk_maps.copy(self.descriptor, self.size)
        self.is_copied = True

    def _copy_own(self) -> None:
        libc = _libc()
        new = libc.mmap(
            None,
            self.size,
            mmap.PROT_READ | mmap.PROT_WRITE,
            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
            -1,
            0,
        )
        if new == FAILED:
            raise OSError(ctypes.get_errno(), "no memory for a copy of a mapped file")
        ctypes.memmove(new, self.address, self.size)
        flags = MREMAP_MAYMOVE | MREMAP_FIXED
        if libc.mremap(new, self.size, self.size, flags, ctypes.c_void_p(self.address)) == FAILED:
            error = ctypes.get_errno()
            libc.munmap(new, self.size)
            raise OSError(error, "a copy of a mapped file cannot take its place")


class _Watcher:
    """The leases of this process, and the thread that copies what a writer waits for."""

    def __init__(self) -> None:
        """Create the object without a lease."""
        self.start_anew()

    def start_anew(self) -> None:
        """Hold no lease, as before the first; what a forked child begins with.

        The lock is a new one, because a thread of the parent may hold the old one.
        """
        self.lock = threading.RLock()  # a map may end, and call `forget`, in the middle of anything
        self.import_lock = threading.Lock()
        self.leases: set[WriteLease] = set()
        self._thread_id = 0

    def leave_to_parent(self) -> None:
        """In a forked child: forget the parent's leases, without giving them back."""
        leases = self.leases
        self.start_anew()
        for lease in leases:
            lease.is_held = lease.is_copied = False  # the parent may be about to change either
            with suppress(OSError):
                os.close(lease.descriptor)

    def take(self, memory: mmap.mmap, descriptor: int) -> WriteLease:
        """Take a lease on a file that `memory` maps, and keep it for as long as the map lasts.

        Raises:
            HasWriterError: Somebody has it open for writing.
            OSError: There is no lease to be had.
            RuntimeError: No thread can be started.
        """
        with self.lock:
            owner = struct.pack("ii", OWNER_TID, self._thread())
            own = os.dup(descriptor)
            try:
                fcntl.fcntl(own, SETOWN_EX, owner)
                fcntl.fcntl(own, fcntl.F_SETSIG, WAKE)
                _set_lease(own)
            except BaseException:
                os.close(own)
                raise
            view = ctypes.c_char.from_buffer(memory)
            address, size = ctypes.addressof(view), len(memory)
            lease = WriteLease(own, address, size, weakref.ref(memory))
            del view
            self.leases.add(lease)
            weakref.finalize(memory, self.forget, lease).atexit = False
        return lease

    def forget(self, lease: WriteLease) -> None:
        """Give a lease back; its map has ended."""
        with self.lock:
            if lease in self.leases:
                self._end(lease)

    def answer_writers(self) -> None:
        """Copy every map whose file a writer waits for, and let the writer go on."""
        with self.lock:
            for lease in [*self.leases]:
                memory = lease.memory()  # held, or it could end, and call `forget`, meanwhile
                if lease not in self.leases or not lease.is_to_end():
                    continue
                if memory is not None:
                    with suppress(OSError):  # without memory, what it writes is seen afterwards
                        lease.copy()
                self._end(lease)

    def _end(self, lease: WriteLease) -> None:
        """Let writers go on."""
        lease.is_held = False
        try:
            fcntl.fcntl(lease.descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError:  # the system has done so, which waits for 45 seconds,
            lease.is_copied = False  # and the writer may have been at work meanwhile
        self.leases.discard(lease)
        os.close(lease.descriptor)

    def _thread(self) -> int:
        if not self._thread_id:
            ready = threading.Event()
            thread = threading.Thread(target=self._serve, args=(ready,), name="ort_lite leases")
            thread.daemon = True
            thread.start()
            ready.wait()
        return self._thread_id

    def _serve(self, ready: threading.Event) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {WAKE})
        self._thread_id = threading.get_native_id()
        ready.set()
        while True:
            signal.sigwait({WAKE})
            self.answer_writers()


@contextmanager
def one_import() -> Iterator[None]:
    """Have SDKs import from mapped files one after another: so it is known whose maps are new."""
    with _watcher.import_lock:
        yield


def take_lease(memory: mmap.mmap, descriptor: int) -> WriteLease | None:
    """Have a mapped file copied when another process is about to write to it.

    Args:
        memory: A private, writable map of the whole file.
        descriptor: The file, open for reading only.

    Returns:
        The lease; None where the system grants none: for files of other users, for file systems
        without leases, for a process that cannot start another thread.

    Raises:
        HasWriterError: Somebody has the file open for writing already.
    """
    try:
        return _watcher.take(memory, descriptor)
    except (OSError, RuntimeError):
        return None


def _set_lease(descriptor: int) -> None:
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError as exc:
        raise HasWriterError from exc


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    libc.mmap.restype = libc.mremap.restype = pointer
    libc.mmap.argtypes = [pointer, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mremap.argtypes = [pointer, size, size, ctypes.c_int, pointer]
    libc.munmap.argtypes = [pointer, size]
    return libc


_watcher = _Watcher()
os.register_at_fork(after_in_child=_watcher.leave_to_parent)

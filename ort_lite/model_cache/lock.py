"""One process at a time for one key, where the system has locks; nobody's numbers depend on it."""

from __future__ import annotations

import errno
import os
import sys
import time
from contextlib import contextmanager, suppress
from threading import RLock
from typing import TYPE_CHECKING

from ort_lite.status import load_canceled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PATIENCE = 600.0
"""Seconds after which a compile that hangs elsewhere is no longer waited for."""
POLL = 0.02

_open_files: set[int] = set()
_opening = RLock()


@contextmanager
def single_flight(path: Path, canceled: Callable[[], bool]) -> Iterator[bool]:
    """Hold the lock file `path`; gives whether it is held.

    It is not where the file cannot be made (its folder is not there, or not ours), the file
    system has no locks, or its holder takes longer than `PATIENCE`. The system lets go of a
    lock whose holder dies; a process that the holder forked does not keep it. The file stays:
    to delete it would let two processes hold two files of one name.

    Raises:
        ModelLoadCanceled: `canceled` said so while waiting.
    """
    try:
        descriptor = _open_lock_file(path)
    except OSError:
        yield False
        return
    try:
        yield _acquire(descriptor, canceled)
    finally:
        _close(descriptor)


def _open_lock_file(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    with _opening:
        descriptor = os.open(path, flags, 0o664)
        _open_files.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    """Unlock and close, unless this is a fork of the holder: the lock is the holder's."""
    with _opening:
        if descriptor not in _open_files:
            return
        _open_files.remove(descriptor)
        with suppress(OSError):  # on a file system without locks
            _unlock(descriptor)  # closing is not enough: another copy may be open
        os.close(descriptor)


def _close_in_child() -> None:
    """A copy of the descriptor keeps the lock, whatever becomes of the process that took it."""
    for descriptor in _open_files:
        os.close(descriptor)
    _open_files.clear()
    _opening.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_close_in_child
    )


def _acquire(descriptor: int, canceled: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            _lock(descriptor)
        except BlockingIOError:
            pass  # another descriptor has it
        except OSError:
            return False
        else:
            return True
        if canceled():
            raise load_canceled()
        if time.monotonic() > until:
            return False
        time.sleep(POLL)


if sys.platform == "win32":
    _FIRST = 1
    """Bytes from the start of the file that are locked; the file may be empty."""

    _HELD = (errno.EACCES, errno.EDEADLK, 0)
    """Error numbers for a lock that another descriptor has; Wine's C runtime sets no number."""

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, _FIRST)
        except OSError as exc:
            if exc.errno in _HELD:
                raise BlockingIOError(*exc.args) from exc
            raise

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, _FIRST)

else:

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)

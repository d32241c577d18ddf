"""One process at a time for one key, where the system has locks; nobody's numbers depend on it."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ort_lite.status import load_canceled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

if sys.platform != "win32":
    import fcntl

PATIENCE = 600.0
"""Seconds after which a compile that hangs elsewhere is no longer waited for."""
POLL = 0.02


@contextmanager
def single_flight(path: Path, canceled: Callable[[], bool]) -> Iterator[bool]:
    """Hold the lock file `path`; gives whether it is held.

    It is not where the file cannot be made (its folder is not there, or not ours), the file
    system has no locks, or its holder takes longer than `PATIENCE`. The system lets go of a
    lock whose holder dies. The file stays: to delete it would let two processes hold two files
    of one name.

    Raises:
        ModelLoadCanceled: `canceled` said so while waiting.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o664)
    except OSError:
        yield False
        return
    held = False
    try:
        held = _acquired(descriptor, canceled)
        yield held
    finally:
        if held and sys.platform != "win32":  # closing is not enough: a fork may hold a copy
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _acquired(descriptor: int, canceled: Callable[[], bool]) -> bool:
    if sys.platform == "win32":  # processes may there compile the same model twice
        return False
    until = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # somebody has it
        except OSError:
            return False
        else:
            return True
        if canceled():
            raise load_canceled()
        if time.monotonic() > until:
            return False
        time.sleep(POLL)

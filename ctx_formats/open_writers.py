"""Whether another process has a file open for writing; on Linux."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from contextlib import suppress

assert sys.platform == "linux", "elsewhere nobody imports it, and type checkers skip the rest"


def is_open_elsewhere(descriptor: int) -> bool:
    """Whether a process other than this one may be in the middle of writing to an open file.

    Linux grants a read lease on a file that nobody has open for writing; it is given back at once.
    False if that says nothing: for files of other users, for file systems without leases.

    Args:
        descriptor: Open for reading only.
    """
    try:
        # The signal if somebody opens the file right now: one that is ignored unless asked for.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return not _is_open_here(descriptor)
    except OSError:
        return False
    with suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _is_open_here(descriptor: int) -> bool:
    """Whether this process has the file open for writing, as with tempfile.NamedTemporaryFile."""
    status = os.fstat(descriptor)
    try:
        others = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - no pathlib here
    except OSError:
        return False
    for other in others:
        with suppress(OSError):  # closed meanwhile, as the one of the folder is
            writes = fcntl.fcntl(other, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
            if writes and os.path.samestat(os.fstat(other), status):
                return True
    return False

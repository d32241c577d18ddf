"""Calls into an SDK that the end of the interpreter must not cut short.

A daemon thread that requests the GIL once Python is ending is stopped there (up to
Python 3.13 by pthread_exit). C++ cannot be unwound like that: the process ends with SIGABRT. So
Python's exit waits for calls into an SDK's extension module, and none begins after that. Calls
through ctypes need no such care where they are short. But a library that exit() tears down while
one of its functions is at work ends the process, too: Intel's OpenCL runtime in a compile (SIGSEGV,
"Pure virtual function called!") or in the release of a kernel ("recursive_mutex lock failed").
"""

from __future__ import annotations

import atexit
import os
from threading import get_ident, main_thread
from time import monotonic, sleep

PATIENCE = 120.0
"""Seconds that the exit waits for a call of a daemon thread; an SDK may hang."""
POLL = 0.002


class UncutCalls:
    """A context manager around each such call, which may contain another."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the calls of threads that a forked process does not have."""
        self._depths: dict[int, int] = {}
        self._ending = False

    def __enter__(self) -> None:
        """Begin a call, unless Python is ending: then the thread stays here."""
        while not self.begin():
            sleep(PATIENCE)

    def begin(self) -> bool:
        """Begin a call that `__exit__` ends; False, and no call, where Python is ending."""
        me, depths = get_ident(), self._depths
        depth = depths.get(me, 0)
        depths[me] = depth + 1  # before the look at `_ending`, as `end` goes the other way round
        if self._ending and not depth and me != main_thread().ident:
            del depths[me]
            return False
        return True

    def __exit__(self, *exc: object) -> None:
        """Leave the call."""
        me = get_ident()
        depth = self._depths.pop(me)
        if depth > 1:
            self._depths[me] = depth - 1

    def end(self) -> None:
        """Let no thread begin a call, and wait for those of other threads that have.

        A signal handler that raises where `__exit__` begins leaves this thread's own call behind.
        """
        self._ending = True
        self._depths.pop(get_ident(), None)
        until = monotonic() + PATIENCE
        while self._depths and monotonic() < until:
            sleep(POLL)


uncut = UncutCalls()
"""The uncut calls of this process."""

atexit.register(uncut.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=uncut.reset)

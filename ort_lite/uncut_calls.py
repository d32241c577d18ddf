"""Calls into an SDK that the end of the interpreter must not cut short.

A daemon thread that asks for the interpreter's lock once Python is ending is stopped there (up to
Python 3.13 by pthread_exit). C++ cannot be unwound like that: the process ends with SIGABRT. So
Python's exit waits for calls into an SDK's extension module, and none begins after that. Calls
through ctypes need no such care, but for compiles: a compiler whose library is torn down by exit()
while it is at work ends the process, too (Intel's OpenCL runtime: SIGSEGV, "Pure virtual function
called!").
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
    """A context manager around each such call; calls must not be nested in one another."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the calls of threads that a forked process does not have."""
        self._inside: set[int] = set()
        self._ending = False

    def __enter__(self) -> None:
        """Begin a call, unless Python is ending: then the thread stays here."""
        while not self.begin():
            sleep(PATIENCE)

    def begin(self) -> bool:
        """Begin a call that `__exit__` ends; False, and no call, where Python is ending."""
        me = get_ident()
        self._inside.add(me)  # before the look at `_ending`, as `end` goes the other way round
        if self._ending and me != main_thread().ident:
            self._inside.discard(me)
            return False
        return True

    def __exit__(self, *exc: object) -> None:
        """End it."""
        self._inside.discard(get_ident())

    def end(self) -> None:
        """Let no thread begin a call, and wait for those that have."""
        self._ending = True
        until = monotonic() + PATIENCE
        while self._inside and monotonic() < until:
            sleep(POLL)


uncut = UncutCalls()
"""Of this process."""

atexit.register(uncut.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=uncut.reset)

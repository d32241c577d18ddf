"""Keeps the alternate signal stack of a thread that loads OpenVINO's CPU plug-in.

The plug-in's constructor gives the thread a signal stack that is large enough for AMX
(sigaltstack(2)); its destructor unmaps that stack. The thread gets its earlier one back only if the
destructor runs in the same thread, and no other Core has set one since. So a thread is left with a
stack that is no longer mapped where another thread ends the plug-in, or where the elder of two
Cores ends first; the next signal with a handler of Python's, Ctrl-C or an alarm, then ends the
process with SIGSEGV. Seen with OpenVINO 2026.4.1. A thread that has its own stack back at once
loses nothing: the destructor only unmaps, and without an alternate stack handlers use the thread's.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


class _Stack(ctypes.Structure):
    """stack_t of Linux."""

    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


class KeptSignalStack:
    """A context manager around calls that may load the plug-in; does nothing but on Linux."""

    def __enter__(self) -> None:
        """Note the thread's signal stack."""
        self._stack = _Stack()
        self._is_known = sys.platform == "linux" and _sigaltstack()(None, self._stack) == 0

    def __exit__(self, *exc: object) -> None:
        """Set it again. Linux refuses one too small for AMX (ENOMEM): then OpenVINO's stays."""
        if self._is_known:
            _sigaltstack()(self._stack, None)


@cache
def _sigaltstack() -> Any:  # noqa: ANN401 - ctypes
    function = ctypes.CDLL(None).sigaltstack
    function.argtypes = (ctypes.POINTER(_Stack), ctypes.POINTER(_Stack))
    return function

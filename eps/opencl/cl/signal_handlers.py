"""Keeps the process's signal handlers where a driver replaces them.

Drivers with LLVM inside (Intel's, PoCL) install LLVM's handlers for 15 signals when a device is
listed or a context created. Those of Python's that were there are then called late (SIGINT,
SIGTERM) or never (SIGUSR1), faulthandler's print LLVM's traces, and SIGXFSZ, which Python ignores,
is no longer ignored.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

_WORDS = 32
"""At least a `struct sigaction` of glibc's or musl's, whose first word is the handler."""
_SIGNALS = tuple(range(1, 32))
"""Those that have a meaning of their own; sigaction(2) refuses SIGKILL and SIGSTOP."""


_NO_HANDLER = (0, 1)
"""SIG_DFL and SIG_IGN."""


class KeptSignalHandlers:
    """A context manager around calls that may start a driver; does nothing but on Linux.

    Only handlers that are foreign to Python are taken back: another thread may have installed one
    of Python's in the meantime.
    """

    def __enter__(self) -> None:
        """Note every signal's handler."""
        self._before = _actions() if sys.platform == "linux" else {}

    def __exit__(self, *exc: object) -> None:
        """Set those again that the driver replaced."""
        for number, action in (_actions() if self._before else {}).items():
            before = self._before.get(number)
            if before is not None and action[0] != before[0] and not _is_pythons(action[0]):
                _libc().sigaction(number, before, None)


def _actions() -> dict[int, ctypes.Array[ctypes.c_size_t]]:
    """What the process does on each signal, by its number."""
    actions = {}
    for number in _SIGNALS:
        action = (ctypes.c_size_t * _WORDS)()
        if _libc().sigaction(number, None, action) == 0:
            actions[number] = action
    return actions


def _is_pythons(handler: int) -> bool:
    """Whether a handler is in the interpreter's library, or there is none."""
    return handler in _NO_HANDLER or _library_of(handler) == _library_of(_python_symbol())


class _Symbol(ctypes.Structure):
    """Dl_info of dladdr(3)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _library_of(address: int) -> int | None:
    """Where the library that has this address is mapped; None if none has it."""
    symbol = _Symbol()
    known = _libc().dladdr(ctypes.c_void_p(address), ctypes.byref(symbol))
    return symbol.base if known else None


def _python_symbol() -> int:
    return ctypes.cast(ctypes.pythonapi.PyOS_setsig, ctypes.c_void_p).value or 0


@cache
def _libc() -> Any:  # noqa: ANN401 - ctypes
    return ctypes.CDLL(None)

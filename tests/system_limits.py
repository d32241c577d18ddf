"""What the system lacks that some tests need: marks with reasons for Windows, and for Wine."""

from __future__ import annotations

import ctypes
import os
import sys

import pytest


def _is_wine() -> bool:
    return sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")


WINDOWS = os.name == "nt"
UNDER_WINE = _is_wine()

needs_symlinks = pytest.mark.skipif(
    WINDOWS, reason="Windows asks for a privilege to make symlinks, and Wine makes none"
)
needs_special_files = pytest.mark.skipif(
    WINDOWS, reason="Windows has no FIFOs or sockets among its files"
)
needs_change_time = pytest.mark.skipif(
    WINDOWS, reason="Windows has no time of change that both stat and fstat tell"
)
needs_removal_while_open = pytest.mark.skipif(
    WINDOWS, reason="Windows removes or replaces no file that is mapped or open"
)
needs_leases = pytest.mark.skipif(
    sys.platform != "linux", reason="file leases are Linux's: elsewhere, a mapped file may change"
)
needs_posix = pytest.mark.skipif(
    WINDOWS, reason="Windows has no POSIX modes, limits, signals, forks or /proc"
)
needs_reading_what_is_mapped = pytest.mark.skipif(
    UNDER_WINE, reason="Wine hangs where a file is read that is mapped for writing"
)

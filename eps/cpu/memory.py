"""How much memory a result may take."""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_AVAILABLE = "MemAvailable:"
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Of the container that the process runs in: control groups version 2 and 1."""

UNKNOWN = 1 << 40
"""Where the system tells nothing: Windows, which refuses what it cannot hold by itself."""


def available_memory() -> int:
    """Bytes that could be written now without the system ending a process.

    What Linux calls available, within the limit of the container; elsewhere the machine's
    memory. Lazily mapped memory would accept more, and the process would die on writing it.
    """
    return min(_system(), *(_limit(path) for path in _LIMITS))


def _system() -> int:
    try:
        lines = _MEMINFO.read_text("ascii").splitlines()
    except OSError:
        return _physical()
    found = next((line for line in lines if line.startswith(_AVAILABLE)), None)
    return int(found.split()[1]) * 1024 if found else _physical()


def _physical() -> int:
    if not hasattr(os, "sysconf"):
        return UNKNOWN
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _limit(path: Path) -> int:
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return UNKNOWN
    return int(text) if text.isdecimal() else UNKNOWN  # "max" is none

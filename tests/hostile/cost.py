"""What a case costs, in processor time and memory, and when that is too much for its bytes."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from collections.abc import Iterator

CPU_FLOOR, CPU_PER_BYTE = 6.0, 100e-6
"""Seconds of processor time. Of 2,000 cases of each reader the slowest took 2.5 s, for an entry of
72 MB; other files of over 1,000 bytes took up to 7 us a byte, YAML up to 113 (PyYAML reads one
character after the other). The floor leaves room for machines that are slower or busy. A reader
whose time grows with the square of a file's size is beyond the bound where files have some 100 KB.
"""
MEMORY_FLOOR, MEMORY_PER_BYTE = 256 << 20, 1000
"""Bytes that the resident memory may grow by in one case. A session's start takes up to 60 MB, the
first of a process more; a node of two bytes in a file takes 500 bytes as a Python object."""
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_UNIT = 1 if sys.platform == "darwin" else 1024
_PEAK_FIELD, _COUNTERS = 1, 9
"""PeakWorkingSetSize in Windows' PROCESS_MEMORY_COUNTERS: two DWORDs, which fill one field of a
pointer's size, and eight such fields more."""


@dataclass(slots=True)
class Cost:
    """Of one case.

    Attributes:
        seconds: Of processor time, in all threads.
        memory: Bytes by which resident memory grew at its peak.
        size: Bytes of the file.
    """

    seconds: float = 0.0
    memory: int = 0
    size: int = 0

    def excess(self) -> str:
        """What is too much, or ""."""
        most_seconds = CPU_FLOOR + CPU_PER_BYTE * self.size
        most_memory = MEMORY_FLOOR + MEMORY_PER_BYTE * self.size
        told = []
        if self.seconds > most_seconds:
            told.append(f"{self.seconds:.1f} s of processor time, at most {most_seconds:.1f}")
        if self.memory > most_memory:
            told.append(f"{self.memory >> 20} MiB of memory, at most {most_memory >> 20}")
        return f"for {self.size} bytes: {' and '.join(told)}" if told else ""


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of what runs inside; `size` is the caller's to fill in."""
    cost = Cost()
    before = _start_peak()
    began = time.process_time()
    try:
        yield cost
    finally:
        cost.seconds = time.process_time() - began
        cost.memory = max(_peak() - before, 0)


def _start_peak() -> int:
    """Resident bytes now, from which the peak counts where the system can begin anew."""
    if os.name != "posix" or not _CLEAR.exists():
        return _peak()  # the largest so far: cases that stay below it count as nothing
    _CLEAR.write_text("5")
    return _peak()


def _peak() -> int:
    if os.name == "posix" and _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    if sys.platform == "win32":
        return _peak_on_windows()

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT


if sys.platform == "win32":

    def _peak_on_windows() -> int:
        counters = (ctypes.c_size_t * _COUNTERS)()
        size = ctypes.sizeof(counters)
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        query = kernel.K32GetProcessMemoryInfo
        query.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32]
        if not query(kernel.GetCurrentProcess(), counters, size):
            raise ctypes.WinError(ctypes.get_last_error())
        return counters[_PEAK_FIELD]

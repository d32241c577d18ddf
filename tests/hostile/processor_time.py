"""How much processor time a process has used: a process that waits for ever uses none."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess


def processor_seconds(process: subprocess.Popen[str], fork: int = 0) -> float:
    """Processor time of a process, without that of its children; 0.0 if it is gone.

    Wine 8 reports the caller's own time instead, which hardly grows while it waits.

    Args:
        process: It, or the one that forks.
        fork: The id of its fork, to ask for that one.
    """
    if sys.platform == "win32":
        times = [ctypes.c_uint64() for _ in range(4)]  # creation, exit, kernel, user: 100 ns
        ctypes.windll.kernel32.GetProcessTimes(
            ctypes.c_void_p(int(getattr(process, "_handle"))),  # noqa: B009 - mypy's stubs lack it
            *map(ctypes.byref, times),
        )
        return (times[2].value + times[3].value) / 1e7
    try:
        fields = Path(f"/proc/{fork or process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

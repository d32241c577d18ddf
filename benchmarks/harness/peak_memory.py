"""How much memory this process has taken."""

from __future__ import annotations

from pathlib import Path


def peak_rss() -> int:
    """High-water mark of this process's resident memory, in bytes.

    From /proc (proc_pid_status(5), VmHWM): getrusage's ru_maxrss starts at what the parent had
    when it forked.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024

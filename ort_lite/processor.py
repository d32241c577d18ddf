"""What the system says of the processor, without imports that a start would wait for."""

from __future__ import annotations

import os
import sys


def machine_name() -> str:
    """The architecture, in the words of `platform.machine()`: "x86_64", "AMD64", "arm64".

    On Windows that function also asks WMI, or starts `cmd /c ver` where there is no WMI, and
    imports `socket` (https://github.com/python/cpython/blob/v3.12.0/Lib/platform.py, `uname`).
    """
    if sys.platform == "win32":
        return os.environ.get("PROCESSOR_ARCHITECTURE", "")
    return os.uname().machine


def count_usable_cpus() -> int:
    """CPUs that the scheduler lets this process run on; all of them where the system has no say.

    Linux alone reports it (sched_getaffinity). Time limits of containers (cgroup cpu.max) are not
    counted: threads share such a limit.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1

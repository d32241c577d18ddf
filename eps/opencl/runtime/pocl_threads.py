"""Has PoCL keep each of its threads on a core of its own.

They sleep between kernels, and after a rest Linux wakes them on one core and leaves them there:
SqueezeNet took 11.5 ms instead of 7.2 (two cores, Linux 6.18, PoCL 3.0). PoCL reads POCL_AFFINITY
when a process first asks for its devices. With it thread i takes core i, and the process is
aborted where that core is not to be had.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

VARIABLE = "POCL_AFFINITY"
CHOSEN_BY_USER = (
    *(VARIABLE, "POCL_MAX_PTHREAD_COUNT", "POCL_PTHREAD_MIN_THREADS"),
    *("POCL_CPU_MAX_CU_COUNT", "POCL_MAX_COMPUTE_UNITS"),
)
"""PoCL's variables for threads, of versions 3 to 7; more threads than cores would be an abort."""


def has_all_cores(environ: Mapping[str, str], allowed: AbstractSet[int], cores: int) -> bool:
    """Whether PoCL makes a thread for each of `cores`, and may put thread i on core i.

    Args:
        environ: Of the process.
        allowed: Cores that the process may use.
        cores: How many the machine has.
    """
    return allowed == set(range(cores)) and not environ.keys() & set(CHOSEN_BY_USER)


@contextmanager
def threads_on_cores() -> Iterator[None]:
    """For the first query of the process for devices; the environment is as before afterwards."""
    cores = os.cpu_count() or 0
    if sys.platform != "linux" or not has_all_cores(os.environ, os.sched_getaffinity(0), cores):
        yield
        return
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[VARIABLE]

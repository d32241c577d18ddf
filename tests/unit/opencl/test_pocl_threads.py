"""PoCL's threads keep to cores of their own, unless that is not to be had or the user decides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eps.opencl.runtime.device import POCL, find_devices
from eps.opencl.runtime.pocl_threads import CHOSEN_BY_USER, has_all_cores

ROOT = Path(__file__).parents[3]
ALLOWED = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
with_pocl = pytest.mark.skipif(
    not any(found.platform.name == POCL for found in find_devices()),
    reason="PoCL is not here",
)
all_cores = pytest.mark.skipif(
    set(range(os.cpu_count() or 0)) != ALLOWED or len(ALLOWED) < 2,
    reason="this process may not use every core of several",
)

SEEN = """
import json, os, sys
if sys.argv[1:]:
    os.sched_setaffinity(0, {int(sys.argv[1])})
from eps.opencl.runtime.device import find_devices
find_devices()
tasks = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
print(json.dumps([[sorted(t) for t in tasks], os.environ.get("POCL_AFFINITY")]))
"""


def seen(environ: dict[str, str], *arguments: str) -> tuple[list[list[int]], str | None]:
    """The cores of each thread of a process that asked for devices, and the variable there."""
    kept = {key: text for key, text in os.environ.items() if key not in CHOSEN_BY_USER}
    done = subprocess.run(
        [sys.executable, "-c", SEEN, *arguments],
        cwd=ROOT,
        env={**kept, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    cores, variable = json.loads(done.stdout)
    return cores, variable


@with_pocl
@all_cores
def test_each_core_has_a_thread_and_the_environment_is_as_before() -> None:
    cores, variable = seen({})
    assert all([core] in cores for core in ALLOWED)
    assert variable is None


@with_pocl
@all_cores
def test_what_the_user_chose_for_pocl_is_left_alone() -> None:
    cores, variable = seen({"POCL_AFFINITY": "0"})
    assert all(set(one) == ALLOWED for one in cores)
    assert variable == "0"


@with_pocl
@all_cores
def test_a_process_that_was_given_one_core_stays_there() -> None:
    core = max(ALLOWED)
    cores, _ = seen({}, str(core))
    assert all(one == [core] for one in cores)


@pytest.mark.parametrize("allowed", [{0}, {2, 3}, {0, 1, 2, 4}])
def test_cores_that_pocl_would_miss_keep_it_from_being_pinned(allowed: set[int]) -> None:
    assert not has_all_cores({}, allowed, 4)


@pytest.mark.parametrize("key", CHOSEN_BY_USER)
def test_a_number_of_threads_from_the_user_keeps_it_from_being_pinned(key: str) -> None:
    assert has_all_cores({}, {0, 1}, 2)
    assert not has_all_cores({key: "1"}, {0, 1}, 2)

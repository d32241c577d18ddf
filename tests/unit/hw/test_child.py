"""A child process ends, whatever it does, and so does everything that it started."""

from __future__ import annotations

import fcntl
import os
import sys
from typing import TYPE_CHECKING

import pytest

from ort_lite.hw.child import Ended, run_child

if TYPE_CHECKING:
    from pathlib import Path

LEAVES_ONE_BEHIND = """\
import subprocess, sys
code = "import fcntl, time; f = open('held', 'w'); fcntl.flock(f, 2); print('held', flush=True)"
left = subprocess.Popen([sys.executable, "-c", code + "; time.sleep(600)"], stdout=subprocess.PIPE)
print(left.stdout.readline().decode())
"""


def test_what_a_child_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    ended = run_child(
        [sys.executable, "-c", LEAVES_ONE_BEHIND],
        env=os.environ,
        folder=tmp_path,
        timeout_s=60,
        log=tmp_path / "log.txt",
    )
    assert (ended.code, ended.timed_out, ended.tail) == (0, False, "held")
    with (tmp_path / "held").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits until nobody holds it


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (-11, "killed by SIGSEGV after 1.0 s"),
        (0xC0000005, "killed by 0xC0000005 after 1.0 s"),
        (0xC0000409, "killed by 0xC0000409 after 1.0 s"),
    ],
)
def test_a_fault_is_a_crash_on_linux_and_on_windows(code: int, told: str) -> None:
    ended = Ended(code=code, timed_out=False, seconds=1, tail="")
    assert ended.crashed
    assert ended.describe() == told


def test_a_status_is_no_crash() -> None:
    ended = Ended(code=3, timed_out=False, seconds=1, tail="")
    assert not ended.crashed
    assert ended.describe() == "ended with status 3 after 1.0 s"

"""A child process ends, whatever it does, and so does everything that it started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ort_lite.hw.child_process import ChildExit, run_child

if TYPE_CHECKING:
    from pathlib import Path

fcntl = pytest.importorskip("fcntl", reason="Windows has no flock, by which a child is seen")

LEAVES_ONE_BEHIND = """\
import subprocess, sys
code = "import fcntl, time; f = open('held', 'w'); fcntl.flock(f, 2); print('held', flush=True)"
left = subprocess.Popen([sys.executable, "-c", code + "; time.sleep(600)"], stdout=subprocess.PIPE)
print(left.stdout.readline().decode())
"""


def is_let_go(path: Path) -> bool:
    """Whether nobody holds a file any more; those who were killed take a moment to go."""
    with path.open() as file:
        for _ in range(100):
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(0.1)
    return False


def test_what_a_child_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    ended = run_child(
        [sys.executable, "-c", LEAVES_ONE_BEHIND],
        env=os.environ,
        folder=tmp_path,
        timeout_s=60,
        log=tmp_path / "log.txt",
    )
    assert (ended.code, ended.timed_out, ended.tail) == (0, False, "held")
    assert is_let_go(tmp_path / "held")


HOLDS = """\
import fcntl, time

def test_that_never_ends():
    file = open("held", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    open("begun", "w").close()
    time.sleep(600)
"""
RUNS_PYTEST = """\
import os, sys
from pathlib import Path
from ort_lite.hw.child_process import run_child
command = [sys.executable, "-m", "ort_lite.hw.child_main", "pytest"]
command += ["-p", "no:cacheprovider", "test_it.py"]
run_child(command, env=os.environ, folder=Path(), timeout_s=60, log=Path("log.txt"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux' PR_SET_PDEATHSIG")
def test_pytest_in_a_row_ends_with_the_run_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(HOLDS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    running = subprocess.Popen([sys.executable, "-c", RUNS_PYTEST], cwd=tmp_path)
    for _ in range(600):
        if (tmp_path / "begun").exists():
            break
        time.sleep(0.1)
    running.kill()
    running.wait()
    assert is_let_go(tmp_path / "held")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (-11, "killed by SIGSEGV after 1.0 s"),
        (0xC0000005, "killed by 0xC0000005 after 1.0 s"),
        (0xC0000409, "killed by 0xC0000409 after 1.0 s"),
    ],
)
def test_a_fault_is_a_crash_on_linux_and_on_windows(code: int, told: str) -> None:
    ended = ChildExit(code=code, timed_out=False, seconds=1, tail="")
    assert ended.has_crashed
    assert ended.describe() == told


def test_a_status_is_no_crash() -> None:
    ended = ChildExit(code=3, timed_out=False, seconds=1, tail="")
    assert not ended.has_crashed
    assert ended.describe() == "ended with status 3 after 1.0 s"

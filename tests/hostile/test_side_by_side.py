"""The judge of hostile cases: a process that waits for ever hangs, a slow one does not."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hostile.processor_time import processor_seconds
from hostile.side_by_side import LEAST_USED, Worker
from system_limits import UNDER_WINE

if TYPE_CHECKING:
    from pathlib import Path

WORKS = """
import sys, time
while time.process_time() < 4 * float(sys.argv[1]):
    pass
print(time.process_time(), flush=True)
sys.stdin.read()
"""
WAITS = "import sys; sys.stdin.read()"


def start_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(UNDER_WINE, reason="Wine reports the caller's own times for every process")
def test_processor_time_is_what_the_process_itself_measures() -> None:
    with start_python(WORKS, str(LEAST_USED)) as process:
        assert process.stdout is not None
        measured = float(process.stdout.readline())
        assert processor_seconds(process) == pytest.approx(measured, abs=LEAST_USED)
        process.communicate()


def test_a_process_that_waits_for_ever_hangs_and_one_that_ends_does_not(tmp_path: Path) -> None:
    with start_python(WAITS) as process:
        assert Worker("cpu", str(tmp_path), seconds=1.0)._answer(process) is None
        process.kill()
    worker = Worker("cpu", str(tmp_path))
    with start_python("") as process:
        assert worker._answer(process) == ""
    with start_python("print('right')") as process:
        assert worker._answer(process) == "right\n"

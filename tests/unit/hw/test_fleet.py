"""Rows on a fleet: the right worker, another one when it dies, and never lost without a word."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unit.hw.conftest import OddProject

    Make = Callable[..., OddProject]

PROGRAM = Path(sys.executable).with_name("ort-lite")
PATIENCE_S = 90
AXES = """\
    once: {{ options: {{ do: "hang-once:{marker}" }} }}
    alone: {{ options: {{ do: hang }} }}
"""
ROWS = """\
  - { id: npu, provider: odd, machine: npu, axes: { do: [once] }, suites: [models] }
  - { id: tpu, provider: odd, machine: tpu, axes: { do: [alone] }, suites: [models] }
  - { id: gpu, provider: odd, machine: gpu, suites: [models] }
"""
MACHINES = "".join(f"  {m}: {{ resources: {{ {m.upper()}: 1 }} }}\n" for m in ("npu", "tpu", "gpu"))
STATES = '  "npu[do=once]": { state: expected }\n  "tpu[do=alone]": { state: expected }\n'


def widen(project: OddProject) -> Path:
    """Give the project rows that need resources; the file that shows that one has begun."""
    marker = project.root / "begun"
    path = project.root / "hw_matrix.yaml"
    text = path.read_text("utf-8").replace("do: []", "do: [right]")
    text = text.replace("machines:\n", f"machines:\n{MACHINES}")
    text = text.replace("  do:\n", f"  do:\n{AXES.format(marker=marker)}")
    text = text.replace("models:\n  dense", f"{ROWS}models:\n  dense", 1)
    head, _, _ = text.partition("states:\n")
    states = f"states:\n  cpu: {{ state: expected }}\n  gpu: {{ state: expected }}\n{STATES}"
    path.write_text(f'{head}{states}  "odd[do=right]": {{ state: expected }}\n', encoding="utf-8")
    return marker


@contextmanager
def process(*arguments: object, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own session, gone with everything it started at the end."""
    environ = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s"}
    with log.open("wb") as out:
        command = [str(part) for part in arguments]
        running = subprocess.Popen(
            command, stdout=out, stderr=out, start_new_session=True, env=environ
        )
    try:
        yield running
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """What `condition` gives once it gives something."""
    for _ in range(PATIENCE_S * 10):
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited {PATIENCE_S} s for {what}")


class Fleet:
    """A scheduler and workers, each a process."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder = stack, folder
        told = folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                    "--scheduler-file", told)  # fmt: skip
        self.address = wait_for(lambda: self._address(told), "the scheduler")

    @staticmethod
    def _address(told: Path) -> str:
        try:
            return str(json.loads(told.read_text())["address"])
        except (OSError, ValueError, KeyError):
            return ""

    def _start(self, kind: str, *arguments: object) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._folder / f"{kind}-{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", "dask", kind, *arguments]
        return self._stack.enter_context(process(*command, log=log)), log

    def worker(self, name: str, resources: str) -> subprocess.Popen[bytes]:
        """A worker that the scheduler knows."""
        started, log = self._start(
            "worker", self.address, "--name", name, "--no-nanny", "--nthreads", "1",
            "--no-dashboard", "--local-directory", self._folder,
            *(["--resources", resources] if resources else []),
        )  # fmt: skip
        wait_for(lambda: b"Registered to" in log.read_bytes(), f"worker {name}")
        return started


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    folder = tmp_path / "fleet"
    folder.mkdir()
    with ExitStack() as stack:
        yield Fleet(stack, folder)


@pytest.mark.slow
def test_a_fleet_runs_rows_where_they_fit_and_loses_none_without_a_word(
    odd: Make, fleet: Fleet
) -> None:
    project = odd(timeout_s=80, cross=[("*", "*", "optimal", "")])
    marker = widen(project)
    first = fleet.worker("first", "NPU=1")
    alone = fleet.worker("alone", "TPU=1")
    command = [PROGRAM, "hw", "run", "cpu", "npu", "tpu", "gpu", "--json",
               "-f", project.root / "hw_matrix.yaml", "--out", project.results,
               "--environments", project.environments, "--artifacts", project.root / "stored",
               "--scheduler", fleet.address.replace("tcp://", "dask://")]  # fmt: skip
    with process(*command, log=project.root / "out.txt") as running:
        wait_for(lambda: marker.exists() or running.poll() is not None, "the row to begin")
        first.kill()
        fleet.worker("second", "NPU=1")
        time.sleep(1)
        alone.kill()
        assert running.wait(PATIENCE_S) in (1, 7)
    text = (project.root / "out.txt").read_text()
    rows = {row["row"]: row for row in json.loads(text[text.index("{\n") :])["rows"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "cpu": "passed",
        "npu[do=once]": "passed",
        "tpu[do=alone]": "lost",
        "gpu": "wrong_hardware",
    }
    assert rows["gpu"]["lacks"] == ["no worker of the fleet offers GPU=1"]
    assert rows["tpu[do=alone]"]["lacks"] == ["the last worker with TPU=1 is gone"]
    assert (project.root / "stored/npu-do-once/result.json").is_file()
    assert project.call("report", project.results, "--out", project.root / "report")[0] == 1
    shown = (project.root / "report/report.md").read_text("utf-8")
    assert "- the last worker with TPU=1 is gone  \n  `tpu[do=alone]`\n" in shown
    assert "| `tpu[do=alone]` | lost |" in shown
    assert "| `npu[do=once]` | passed |" in shown


def test_a_scheduler_that_is_not_there_is_a_usage_error(odd: Make) -> None:
    project = odd()
    done = subprocess.run(
        [PROGRAM, "hw", "run", "cpu", "--scheduler", "http://nobody", "-f",
         project.root / "hw_matrix.yaml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--scheduler http://nobody: expected dask://HOST:PORT" in done.stderr

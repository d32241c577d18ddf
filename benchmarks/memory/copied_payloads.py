"""What copying a payload file costs against mapping it: start-up, memory, and N processes.

For each size in `--megabytes` a context model y = x @ w is compiled, its payload in a file. Turn by
turn, in an order drawn anew, a fresh process imports numpy and ort_lite, opens a session with
`session.ep_context_map` 1 (map) and 0 (copy) and runs it. Then `--processes` sessions of each kind
are open at once. Linux only. On a machine with other work: `chrt -f 10 python copied_payloads.py`.

wall, CPU: milliseconds from before the process's start to the first answer, and its processor time,
medians; x: medians over turns of the ratio to map. peak: the process's most memory (VmHWM), pages
of files included. own: its memory after the first run without pages of files. together: memory of
all processes at once, shared pages counted once (the sum of Pss).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.harness.conditions import conditions
from benchmarks.harness.report import text_table

if TYPE_CHECKING:
    from collections.abc import Sequence

EP = "OpenVINOExecutionProvider"
MODULE = "benchmarks.memory.copied_payloads"
ROWS = 1024
MODES = {"map": "1", "copy": "0"}
COLUMNS = ("payload", "", "wall", "x", "CPU", "x", "peak MB", "own MB", "together MB")


@dataclass(slots=True)
class Found:
    """Costs that the processes of one mode report, turn by turn."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    together: int = 0


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[3, 10, 16, 30, 100, 1000])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--json", type=Path, help="write every measurement there")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child(*arguments.child)
    results: dict[int, dict[str, Found]] = {}
    for size in arguments.megabytes:
        with tempfile.TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            context = write_context(Path(folder), size)
            results[size] = measure_modes(context, arguments.turns)
            for mode, costs in results[size].items():
                costs.together = measure_together(context, mode, arguments.processes)
        sys.stderr.write(f"{size} MB\n")
    print(conditions(), end="")
    print(text_table(COLUMNS, [row for size in results for row in rows(size, results[size])]))
    if arguments.json:
        report = {size: {m: asdict(f) for m, f in costs.items()} for size, costs in results.items()}
        arguments.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    return 0


def write_context(folder: Path, megabytes: int) -> Path:
    """The context model, compiled by a process of its own."""
    command = [sys.executable, "-m", MODULE, "--child", "compile", str(folder), str(megabytes)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "c.onnx"


def measure_modes(context: Path, turns: int) -> dict[str, Found]:
    """Both modes turn by turn, after one turn that fills the caches."""
    costs_of = {mode: Found() for mode in MODES}
    order = random.Random(0)
    for turn in range(turns + 1):
        for mode in order.sample(sorted(MODES), len(MODES)):
            time.sleep(0.2)
            began = time.monotonic()
            process = open_process(context, mode)
            answer = read_costs(process)
            end_process(process)
            if turn:
                costs_of[mode].wall.append((answer["at"] - began) * 1000)
                costs_of[mode].cpu.append(answer["cpu"] * 1000)
                costs_of[mode].peak.append(int(answer["peak"]))
                costs_of[mode].own.append(int(answer["own"]))
    return costs_of


def measure_together(context: Path, mode: str, count: int) -> int:
    """Bytes that `count` processes have, each with a session that has run."""
    processes = [open_process(context, mode) for _ in range(count)]
    for process in processes:
        read_costs(process)
    total = sum(memory_of(process.pid)["Pss"] for process in processes)
    for process in processes:
        end_process(process)
    return total


def open_process(context: Path, mode: str) -> subprocess.Popen[str]:
    """A process that opens a session, runs it, tells, and waits for its end."""
    command = [sys.executable, "-m", MODULE, "--child", "run", str(context), MODES[mode]]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


def read_costs(process: subprocess.Popen[str]) -> dict[str, float]:
    """What a process says once it has run."""
    assert process.stdout is not None, "it is a pipe"
    answer: dict[str, float] = json.loads(process.stdout.readline())
    return answer


def end_process(process: subprocess.Popen[str]) -> None:
    """Let a process end, and wait for it."""
    process.communicate("end\n")
    assert process.returncode == 0, "it said so before"


def child(what: str, path: str, argument: str) -> int:
    """What a process of its own is asked."""
    if what == "compile":
        from benchmarks.memory.large_context import write_large_context  # noqa: PLC0415 - not in what is measured

        write_large_context(Path(path), int(argument), ROWS)
        return 0
    import numpy as np  # noqa: PLC0415 - part of what is measured

    import ort_lite as ort  # noqa: PLC0415 - as above

    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_map", argument)
    session = ort.InferenceSession(path, options, providers=[EP])
    session.run(None, {"x": np.ones((1, ROWS), np.float32)})
    at, times = time.monotonic(), os.times()
    own = memory_of(os.getpid())["Anonymous"]
    answer = {"at": at, "cpu": times.user + times.system, "peak": peak(), "own": own}
    print(json.dumps(answer), flush=True)
    sys.stdin.readline()
    return 0


def memory_of(process: int) -> dict[str, int]:
    """Bytes by the names of proc_pid_smaps(5)."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def peak() -> int:
    """High-water mark of this process's resident memory in bytes, from proc_pid_status(5)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def rows(size: int, costs_of: dict[str, Found]) -> list[tuple[str, ...]]:
    """One for each mode."""
    mapped = costs_of["map"]
    return [
        (
            f"{size} MB" if mode == "map" else "",
            mode,
            f"{median(one.wall):.0f}",
            f"{ratio(one.wall, mapped.wall):.3f}",
            f"{median(one.cpu):.0f}",
            f"{ratio(one.cpu, mapped.cpu):.3f}",
            f"{median(one.peak) / 1e6:.0f}",
            f"{median(one.own) / 1e6:.0f}",
            f"{one.together / 1e6:.0f}",
        )
        for mode, one in costs_of.items()
    ]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over turns."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    sys.exit(main())

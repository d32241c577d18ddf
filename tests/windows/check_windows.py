"""Runs slices of the tests with Windows' Python under Wine, on the wheel of this checkout.

`python tests/windows/check_windows.py [SLICE ...] [--folder FOLDER] [--only-build]`. Builds what it
needs (machine.py), prints a line for each slice and one for each failure, and ends with 1 if there
is one. A test that hangs or ends the process counts as failed; the slice goes on behind it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from windows.machine import ROOT, Machine, MissingError, made, windows_path  # noqa: E402 - the path is first
from windows.outcomes import PATH  # noqa: E402 - as above

SLICES = {
    "formats": ("tests/unit/ctx_formats", "tests/unit/ort_format"),
    "core": ("tests/unit/core",),
    "execution": ("tests/unit/execution",),
    "model_cache": ("tests/unit/model_cache",),
    "cli": ("tests/unit/cli",),
    "openvino": ("tests/unit/openvino",),
    "opencl": ("tests/unit/opencl",),
    "cpu": ("tests/unit/cpu", "tests/unit/cpu_contrib", "tests/unit/cpu_ml"),
    "stand_in": ("tests/unit/as_onnxruntime",),
    "trust": ("tests/unit/trust",),
    "packages": ("tests/unit/packages",),
    "hw": ("tests/unit/hw",),
    "others": ("tests/unit/ep", "tests/unit/quantization", "tests/unit/transforms"),
    "conformance": ("tests/conformance",),
    "hostile": ("tests/hostile",),
    "interop": ("tests/interop",),
    "plugin": ("tests/plugin",),
}
CROSSING = "crossing"
"""Not a slice of tests: contexts that are made here and loaded there, and the reverse."""
LONGEST_TEST = 1200
"""Seconds; the processes that a test starts take seconds each."""
MOST_RESTARTS = 40
LAST_WORDS = 10
"""Seconds that a process's output may arrive after its end."""


@dataclass(slots=True)
class Result:
    """What became of one slice."""

    outcomes: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def count(self, outcome: str) -> int:
        """How many tests ended so."""
        return Counter(self.outcomes.values())[outcome]

    @property
    def failures(self) -> list[str]:
        """Tests that failed, or did not end."""
        return [test for test, found in self.outcomes.items() if found not in ("passed", "skipped")]


def run_slice(machine: Machine, name: str, chosen: tuple[str, ...]) -> Result:
    """Run one slice, as often as it takes to get behind what hangs."""
    result, began = Result(), time.monotonic()
    log = machine.folder / "logs" / f"{name}.jsonl"
    log.parent.mkdir(exist_ok=True)
    for _ in range(MOST_RESTARTS):
        log.unlink(missing_ok=True)
        code = _run_pytest(machine, log, chosen, [test for test in result.outcomes if "::" in test])
        started = _read(log, result)
        if not started:
            if code not in (0, 1, 5):
                result.outcomes[f"{name}: pytest"] = "failed"
                result.texts[f"{name}: pytest"] = f"ended with {code}: {log.with_suffix('.txt')}"
            break
        for test in started:
            result.outcomes[test] = "hung"
            result.texts[test] = f"the process ended with {code}; {log.with_suffix('.txt')}"
    result.seconds = time.monotonic() - began
    return result


def cross(machine: Machine) -> Result:
    """Make contexts on each system, and load them on the other."""
    result, began = Result(), time.monotonic()
    program = Path("tests", "windows", "crossing.py")
    here = [sys.executable, str(ROOT / program)]
    there = machine.command(str(program))
    for maker, loader, name in ((here, there, "from_linux"), (there, here, "from_windows")):
        folder = machine.folder / CROSSING / name
        shutil.rmtree(folder, ignore_errors=True)
        steps = ((maker, "make"), (loader, "load"))
        done = [_crossed(machine, command, step, folder) for command, step in steps]
        ended = all(process.returncode == 0 for process in done)
        result.outcomes[name] = "passed" if ended else "failed"
        result.texts[name] = "".join(process.stdout for process in done)
    result.seconds = time.monotonic() - began
    return result


def _crossed(
    machine: Machine, command: list[str], step: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    in_wine = command[0] == "wine"
    return subprocess.run(
        [*command, step, windows_path(folder) if in_wine else str(folder)],
        cwd=machine.checkout if in_wine else ROOT,
        env=machine.environment() if in_wine else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _run_pytest(machine: Machine, log: Path, chosen: tuple[str, ...], behind: list[str]) -> int:
    # Command lines are short on Windows.
    listed = log.with_suffix(".args")
    listed.write_text("".join(f"--deselect={test}\n" for test in behind), encoding="utf-8")
    options = [
        *("-q", "--tb=short", "--color=no", "-p", "no:cacheprovider", "-p", "windows.outcomes"),
        "--continue-on-collection-errors",
        *("--timeout", str(LONGEST_TEST), f"@{windows_path(listed)}"),
    ]
    command = machine.command("-X", "faulthandler", "-m", "pytest", *options, *chosen)
    own = windows_path(machine.checkout / "tests")
    environment = machine.environment(**{PATH: windows_path(log), "PYTHONPATH": own})
    # Through a pipe: what Wine's programs write to a file directly they may write twice.
    process = subprocess.Popen(
        command,
        cwd=machine.checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    copying = Thread(target=_copy_output, args=(process, log.with_suffix(".txt")), daemon=True)
    copying.start()
    code = process.wait()
    copying.join(LAST_WORDS)
    return code


def _copy_output(process: subprocess.Popen[bytes], path: Path) -> None:
    """Copy what a process prints. Wine's server, which it may have started, has the pipe too."""
    assert process.stdout is not None
    with path.open("wb", buffering=0) as out:
        for line in process.stdout:
            out.write(line)


def _read(log: Path, result: Result) -> set[str]:
    """Add a log's outcomes; the tests that were started and did not end."""
    open_tests: set[str] = set()
    for text in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        line = json.loads(text)
        test, outcome = line["test"], line["outcome"]
        if outcome == "started":
            open_tests.add(test)
        elif outcome == "finished":
            open_tests.discard(test)
        elif result.outcomes.get(test) != "failed":
            result.outcomes[test] = outcome
            result.texts[test] = line["text"]
    return open_tests


def main() -> int:
    """Run the slices that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("slices", nargs="*", metavar="SLICE", help=", ".join((*SLICES, CROSSING)))
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "windows")
    parser.add_argument("--only-build", action="store_true", help="build the machine and stop")
    asked = parser.parse_args()
    unknown = [name for name in asked.slices if name not in (*SLICES, CROSSING)]
    if unknown:
        parser.error(f"no slice {unknown[0]}; there are {', '.join((*SLICES, CROSSING))}")
    try:
        machine = made(asked.folder.resolve())
    except MissingError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 2
    failed = False
    if asked.only_build:
        return 0
    print(f"{'slice':12} {'passed':>7} {'failed':>7} {'hung':>5} {'skipped':>8} {'seconds':>8}")
    for name in asked.slices or (*SLICES, CROSSING):
        result = cross(machine) if name == CROSSING else run_slice(machine, name, SLICES[name])
        counts = [result.count(outcome) for outcome in ("passed", "failed", "hung", "skipped")]
        row = f"{counts[0]:7} {counts[1]:7} {counts[2]:5} {counts[3]:8} {result.seconds:8.0f}"
        print(f"{name:12} {row}", flush=True)
        for test in result.failures:
            failed = True
            last = (result.texts[test].strip().splitlines() or [""])[-1]
            print(f"  {result.outcomes[test]}: {test}: {last[:300]}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

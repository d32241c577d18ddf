"""Runs slices of the tests with Windows' Python under Wine, on the wheel of this checkout.

`python tests/windows/check_windows.py [SLICE ...]`; a SLICE may also be a test file or a folder of
them. Builds what it needs (machine.py), prints a line for each test file, and ends with 1 if a test
failed. A test that hangs or ends the process counts as failed; the slice goes on behind it.

Outcomes are kept (record.py): a run that was stopped goes on where it stopped, and `--summary`
prints what is known without running anything, also while another process runs the tests.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from windows.machine import ROOT, Machine, MissingError, build_machine, recipe, windows_path  # noqa: E402 - the path is first
from windows.record import FileOutcomes, Record, open_record  # noqa: E402 - as above
from windows.run_slice import SliceRun  # noqa: E402 - as above
from windows.slices import SLICES, UnknownSliceError, files_of  # noqa: E402 - as above
from windows.summary import describe_failures, describe_file, print_summary  # noqa: E402 - as above

CROSSING = "crossing"
"""Not a slice of tests: contexts that are made here and loaded there, and the reverse."""
STOPPED = 130
"""The exit status after Ctrl-C, as of a shell."""


def cross(machine: Machine, record: Record) -> None:
    """Make contexts on each system, and load them on the other."""
    if record.read(CROSSING).complete:
        return
    record.forget(CROSSING)
    program = Path("tests", "windows", "crossing.py")
    here = [sys.executable, str(ROOT / program)]
    there = machine.command(str(program))
    began = time.monotonic()
    for maker, loader, name in ((here, there, "from_linux"), (there, here, "from_windows")):
        folder = machine.folder / CROSSING / name
        shutil.rmtree(folder, ignore_errors=True)
        steps = ((maker, "make"), (loader, "load"))
        done = [_run_step(machine, command, step, folder) for command, step in steps]
        ended = all(process.returncode == 0 for process in done)
        text = "".join(process.stdout for process in done)
        seconds = round(time.monotonic() - began, 1)
        record.append(
            CROSSING,
            {"test": name, "outcome": "started"},
            {"test": name, "outcome": "passed" if ended else "failed", "text": text},
            {"test": name, "outcome": "finished", "seconds": seconds},
        )
        began = time.monotonic()
    record.append(CROSSING, {"outcome": "collected", "tests": 2}, {"outcome": "complete"})


def _run_step(
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


def run(machine: Machine, record: Record, slices: dict[str, tuple[str, ...]]) -> list[str]:
    """Run slices, and report on each file; why slices could not be run to their end."""
    problems = []
    number, total = 0, sum(map(len, slices.values()))

    def report(file: str, outcomes: FileOutcomes) -> None:
        nonlocal number
        number += 1
        print(f"[{number}/{total}] {describe_file(file, outcomes)}", flush=True)
        print(describe_failures(outcomes), end="", flush=True)

    for name, files in slices.items():
        kept = [file for file in files if record.read(file).complete]
        number += len(kept)
        if kept:
            print(f"{name}: {len(kept)} of {len(files)} files are done already", flush=True)
        if name == CROSSING:
            if not kept:
                cross(machine, record)
                report(CROSSING, record.read(CROSSING))
            continue
        problem = SliceRun(machine, record, name, files, report).run()
        if problem:
            problems.append(f"{name}: {problem}")
            print(f"error: {problems[-1]}", flush=True)
    return problems


def main() -> int:
    """Run the slices that are named, or all."""
    asked = _arguments()
    folder = asked.folder.resolve()
    try:
        slices = {
            name: (CROSSING,) if name == CROSSING else files_of(name, ROOT)
            for name in asked.slices or (CROSSING, *SLICES)
        }
        if asked.summary:
            record = open_record(folder / "outcomes", ROOT, recipe())
            return int(print_summary(record, slices) > 0)
        machine = build_machine(folder)
    except (MissingError, UnknownSliceError) as exc:
        print(f"error: {exc}", file=sys.stderr)
        return 2
    if asked.only_build:
        return 0
    record = open_record(folder / "outcomes", ROOT, recipe())
    for file in [file for files in slices.values() for file in files]:
        if asked.again:
            record.forget(file)
        elif asked.failed:
            record.forget_failures(file)
    signal.signal(signal.SIGTERM, _stop)
    try:
        problems = run(machine, record, slices)
    except KeyboardInterrupt:
        machine.stop()
        print("stopped; the same command goes on from here", file=sys.stderr)
        return STOPPED
    failures = print_summary(record, slices)
    return int(failures > 0 or bool(problems))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = ", ".join((CROSSING, *SLICES))
    parser.add_argument(
        "slices", nargs="*", metavar="SLICE", help=f"{names}; or a test file or folder"
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "windows")
    parser.add_argument("--only-build", action="store_true", help="build the machine and stop")
    parser.add_argument("--again", action="store_true", help="run the slices anew")
    parser.add_argument("--failed", action="store_true", help="run their failed tests anew")
    parser.add_argument(
        "--summary", action="store_true", help="print the outcomes so far, and run nothing"
    )
    return parser.parse_args()


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())

"""Sessions opened, run and closed by the thousand: `python tests/endurance/soak.py --help`.

What a process holds is sampled on the way, written as CSV and JSON and drawn as SVG. The exit code
is 1 if a curve rises (curves.py has the bounds), an answer is wrong, or a process dies.
Each run is a process of its own; "mixed" does every piece of work in turn.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]

from endurance.curves import BOUNDS, rising  # noqa: E402 - the path comes first
from endurance.drawing import draw  # noqa: E402 - as above
from endurance.samples import read_sample  # noqa: E402 - as above
from endurance.work import EPS, ROADS, pieces_of, prepare  # noqa: E402 - as above

SAMPLES = 100


def main() -> int:
    """Make the runs; 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ep", choices=EPS, action="append", help="default: all")
    parser.add_argument(
        "--road",
        choices=[*ROADS, "fork", "kill", "mixed"],
        action="append",
        help="what is done again and again; default: plain, context and mixed",
    )
    parser.add_argument("--count", type=int, default=1000, help="pieces of work (%(default)s)")
    parser.add_argument("--seconds", type=float, help="for each run, instead of a count")
    parser.add_argument(
        "--warm-up", type=int, default=5, help="pieces of each kind before the first sample"
    )
    parser.add_argument("--out", type=Path, default=Path("soak"), help="folder (%(default)s)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        return work(asked.ep[0], asked.road[0], asked)
    asked.out.mkdir(parents=True, exist_ok=True)
    findings: dict[str, dict[str, str]] = {}
    runs: dict[str, list[dict[str, float]]] = {}
    for ep in asked.ep or EPS:
        for road in asked.road or ("plain", "context", "mixed"):
            if ep == "CPU" and road in ("context", "embedded"):
                continue  # it keeps no contexts
            name = f"{ep} {road}"
            runs[name], problem = run(ep, road, asked)
            found = {"process": problem} if problem else rising(runs[name])
            if found:
                findings[name] = found
            sys.stderr.write(f"{name}: {_summary(runs[name])} {found or 'flat'}\n")
    _write(asked.out, runs, findings)
    return int(bool(findings))


def work(ep: str, road: str, asked: argparse.Namespace) -> int:
    """One run in this process, one line of JSON for each sample."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(ep)
        pieces = pieces_of(ep)
        chosen = list(pieces.values()) if road == "mixed" else [pieces[road]]
        for _ in range(asked.warm_up):
            for piece in chosen:
                piece()
        began = time.monotonic()
        done, taken = 0, 0
        while True:
            gone = time.monotonic() - began
            part = gone / asked.seconds if asked.seconds else done / asked.count
            if part * SAMPLES >= taken:
                sample = read_sample(done, Path(folder))
                sys.stdout.write(json.dumps(sample.as_row()) + "\n")
                sys.stdout.flush()
                taken += 1
            if part >= 1:
                break
            chosen[done % len(chosen)]()
            done += 1
        os.chdir("/")
    return 0


def run(ep: str, road: str, asked: argparse.Namespace) -> tuple[list[dict[str, float]], str]:
    """Samples of a run in a child process, and how that died if it did."""
    command = [sys.executable, str(HERE), "--worker", "--ep", ep, "--road", road]
    command += ["--count", str(asked.count), "--warm-up", str(asked.warm_up)]
    command += ["--seconds", str(asked.seconds)] if asked.seconds else []
    with tempfile.TemporaryDirectory() as folder:  # where nobody else leaves anything
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TMPDIR": folder},
        )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    problem = ""
    if done.returncode:
        problem = f"ended with {done.returncode} after {len(rows)} samples: {done.stderr[-2000:]}"
    return rows, problem


def _summary(rows: list[dict[str, float]]) -> str:
    if not rows:
        return "no samples"
    first, last = rows[0], rows[-1]
    return ", ".join(f"{key} {first[key]} -> {last[key]}" for key in first)


def _write(
    folder: Path, runs: dict[str, list[dict[str, float]]], findings: dict[str, dict[str, str]]
) -> None:
    report = {"schema_version": 1, "bounds": BOUNDS, "findings": findings, "runs": runs}
    (folder / "soak.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "soak.svg").write_text(draw(runs))
    with (folder / "soak.csv").open("w", newline="") as file:
        rows = [{"run": name, **row} for name, found in runs.items() for row in found]
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["run"])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())

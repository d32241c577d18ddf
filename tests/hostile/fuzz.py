"""Thousands of damaged files through real sessions: `python tests/hostile/fuzz.py --help`.

Cases run in child processes, so that a crash or a hang of vendor code is a finding like any
other. A case is named `format:seed:index` and can be run again alone with --case.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]

from hostile.fuzz_targets import TARGETS  # noqa: E402 - the path comes first

CASE_SECONDS = 60
"""A case takes some hundredths of a second; this long is a hang, on the slowest machine."""


def main() -> int:
    """Run the cases; 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=sorted(TARGETS), action="append")
    parser.add_argument("--count", type=int, default=20_000, help="cases per format (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", metavar="FORMAT:SEED:INDEX", help="run this one, here")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    if asked.case:
        name, seed, index = asked.case.split(":")
        return work(name, int(seed), int(index), int(index) + 1)
    if asked.worker:
        return work(asked.format[0], asked.seed, *asked.worker)
    reports = [survey(name, asked.seed, asked.count) for name in asked.format or sorted(TARGETS)]
    sys.stdout.write(json.dumps({"schema_version": 1, "formats": reports}, indent=2) + "\n")
    return int(any(report["findings"] for report in reports))


def work(name: str, seed: int, start: int, end: int) -> int:
    """Run cases in this process, one line of JSON each."""
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[name](Path(folder))
        for index in range(start, end):
            faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
            try:
                outcome = target.case(seed, index)
                told = [index, outcome.kind, outcome.detail]
            except Exception:  # noqa: BLE001 - whatever it is, it is a finding
                told = [index, "finding", traceback.format_exc(limit=-4)]
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
        faulthandler.cancel_dump_traceback_later()
    return 0


def survey(name: str, seed: int, count: int) -> dict[str, object]:
    """All cases of one format; a child that dies is a finding, and another one goes on."""
    tally: Counter[str] = Counter()
    findings: list[dict[str, str]] = []
    at = 0
    while at < count:
        command = [sys.executable, str(HERE), "--format", name, "--seed", str(seed)]
        command += ["--worker", str(at), str(count)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            for line in child.stdout:
                index, kind, detail = json.loads(line)
                at = index + 1
                if kind == "finding":
                    findings.append({"case": f"{name}:{seed}:{index}", "what": detail})
                    sys.stderr.write(f"{name}:{seed}:{index}: {detail}\n")
                tally[f"{kind} {detail}".strip() if kind != "finding" else kind] += 1
                if at % 1000 == 0:
                    sys.stderr.write(f"{name}: {at} of {count}, {len(findings)} findings\n")
            error = child.stderr.read()
        if at < count:
            what = f"the process ended with {child.returncode}: {error[-2000:]}"
            findings.append({"case": f"{name}:{seed}:{at}", "what": what})
            tally["finding"] += 1
            at += 1
    return {
        "format": name,
        "seed": seed,
        "cases": count,
        "outcomes": dict(sorted(tally.items())),
        "findings": findings,
    }


if __name__ == "__main__":
    sys.exit(main())

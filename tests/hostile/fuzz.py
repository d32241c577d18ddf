"""Thousands of damaged files through real sessions: `python tests/hostile/fuzz.py --help`.

Cases run in child processes, so that a crash or a hang of vendor code is a finding like any
other; so is a case that takes more processor time or memory than its file's bytes allow (see
cost.py). A case is named `format:seed:index` and can be run again alone with --case; with --keep
the damaged file of each finding is written to a folder.
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
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]

from hostile.cost import Cost, measured  # noqa: E402 - the path comes first
from hostile.fuzz_targets import TARGETS  # noqa: E402 - the path comes first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hostile.fuzz_target import Target

LARGE = 1000
"""Bytes; a smaller file's cost is what opening anything costs."""
CASE_SECONDS = 60
"""A case takes some hundredths of a second; this long is a hang, on the slowest machine."""


def main() -> int:
    """Run the cases; 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=sorted(TARGETS), action="append")
    parser.add_argument("--count", type=int, default=20_000, help="cases per format (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", metavar="FORMAT:SEED:INDEX", help="run this one, here")
    parser.add_argument("--keep", type=Path, help="folder for the files of findings")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    if asked.case:
        name, seed, index = asked.case.split(":")
        return work(name, int(seed), range(int(index), int(index) + 1), asked.keep)
    if asked.worker:
        return work(asked.format[0], asked.seed, range(*asked.worker), asked.keep)
    names = asked.format or sorted(TARGETS)
    reports = [survey(name, asked.seed, asked.count, asked.keep) for name in names]
    sys.stdout.write(json.dumps({"schema_version": 1, "formats": reports}, indent=2) + "\n")
    return int(any(report["findings"] for report in reports))


def work(name: str, seed: int, indices: range, keep: Path | None) -> int:
    """Run cases in this process, one line of JSON each."""
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[name](Path(folder))
        for index in indices:
            faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
            kind, detail, cost = run_case(target, seed, index)
            if kind == "finding" and keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}-{seed}-{index}").write_bytes(target.last)
            told = [index, kind, detail, cost.seconds, cost.memory, cost.size]
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
        faulthandler.cancel_dump_traceback_later()
    return 0


def run_case(target: Target, seed: int, index: int) -> tuple[str, str, Cost]:
    """What became of a case, why, and what it cost."""
    with measured() as cost:
        try:
            outcome = target.case(seed, index)
            kind, detail = outcome.kind, outcome.detail
        except Exception:  # noqa: BLE001 - whatever it is, it is a finding
            kind, detail = "finding", traceback.format_exc(limit=-4)
    cost.size = len(target.last)
    excess = cost.excess()
    if excess and kind != "finding":
        kind, detail = "finding", excess
    return kind, detail, cost


def survey(name: str, seed: int, count: int, keep: Path | None) -> dict[str, object]:
    """All cases of one format; a child that dies is a finding, and another one goes on."""
    tally: Counter[str] = Counter()
    findings: list[dict[str, str]] = []
    costs: dict[int, Cost] = {}
    at = 0
    while at < count:
        command = [sys.executable, str(HERE), "--format", name, "--seed", str(seed)]
        command += ["--worker", str(at), str(count)]
        command += ["--keep", str(keep)] if keep is not None else []
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            for line in child.stdout:
                index, kind, detail, *spent = json.loads(line)
                costs[index] = Cost(*spent)
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
        "costs": summary(costs),
        "findings": findings,
    }


def summary(costs: Mapping[int, Cost]) -> dict[str, object]:
    """The cases that took most, as they are and for each byte of files of 1,000 bytes and more."""
    if not costs:
        return {}
    large = {index: cost for index, cost in costs.items() if cost.size >= LARGE} or dict(costs)
    slowest = max(costs, key=lambda i: costs[i].seconds)
    greediest = max(costs, key=lambda i: costs[i].memory)
    per_byte = max(large, key=lambda i: large[i].seconds / max(large[i].size, 1))
    most_memory = max(large, key=lambda i: large[i].memory / max(large[i].size, 1))
    return {
        "slowest": _told(slowest, costs[slowest]),
        "slowest per byte": _told(per_byte, costs[per_byte]),
        "most memory": _told(greediest, costs[greediest]),
        "most memory per byte": _told(most_memory, costs[most_memory]),
    }


def _told(index: int, cost: Cost) -> dict[str, object]:
    size = max(cost.size, 1)
    return {
        "index": index,
        "bytes": cost.size,
        "seconds": round(cost.seconds, 3),
        "microseconds per byte": round(cost.seconds / size * 1e6, 1),
        "MiB": round(cost.memory / (1 << 20), 1),
        "bytes per byte": round(cost.memory / size, 1),
    }


if __name__ == "__main__":
    sys.exit(main())

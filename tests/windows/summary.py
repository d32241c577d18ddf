"""Outcomes as text: a line for a test file, a table of slices, the reasons of skips."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windows.record import FileOutcomes, Record

KINDS = ("passed", "failed", "hung", "skipped")
WIDTH = 300
"""Characters of a failure's last line that are printed."""


def describe_file(file: str, outcomes: FileOutcomes) -> str:
    """One line: how many tests of a file ended how."""
    counts = [f"{outcomes.count(kind)} {kind}" for kind in KINDS if outcomes.count(kind)]
    return f"{file}: {', '.join(counts) or 'no tests'} ({outcomes.seconds:.0f} s)"


def describe_failures(outcomes: FileOutcomes) -> str:
    """A line for each failure of a file."""
    lines = []
    for test in outcomes.failures:
        last = (outcomes.texts[test].strip().splitlines() or [""])[-1]
        lines.append(f"  {outcomes.outcomes[test]}: {test}: {last[:WIDTH]}\n")
    return "".join(lines)


def print_summary(record: Record, slices: Mapping[str, Sequence[str]]) -> int:
    """Print a table of slices, the failures and the reasons of skips; how many tests failed."""
    print(f"\n| {'slice':12} | files done |  passed |  failed |    hung | skipped | seconds |")
    print("|---|---|---|---|---|---|---|")
    everything = {
        name: [record.read(file) for file in files] for name, files in slices.items() if files
    }
    for name, outcomes in everything.items():
        print(_row(name, outcomes))
    if len(everything) > 1:
        print(_row("all", [found for outcomes in everything.values() for found in outcomes]))
    failures = 0
    for name, outcomes in everything.items():
        failed = "".join(map(describe_failures, outcomes))
        failures += failed.count("\n")
        running = [f"  running: {test}\n" for found in outcomes for test in found.running]
        reasons = Counter(
            found.texts[test].strip().splitlines()[-1][:WIDTH] if found.texts[test] else "no reason"
            for found in outcomes
            for test, outcome in found.outcomes.items()
            if outcome == "skipped"
        )
        skipped = [f"  {count:4} skipped: {reason}\n" for reason, count in reasons.most_common()]
        if failed or running or skipped:
            print(f"\n{name}:\n{failed}{''.join(running)}{''.join(skipped)}", end="")
    return failures


def _row(name: str, outcomes: Sequence[FileOutcomes]) -> str:
    done = f"{sum(found.complete for found in outcomes)} of {len(outcomes)}"
    counts = [sum(found.count(kind) for found in outcomes) for kind in KINDS]
    seconds = sum(found.seconds for found in outcomes)
    numbers = " | ".join(f"{count:7}" for count in (*counts, round(seconds)))
    return f"| {name:12} | {done:>10} | {numbers} |"

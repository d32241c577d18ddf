"""What does a run cost whose lengths are new, as those of texts, sounds and lines of print are?

`python -m benchmarks.latency.lengths MODEL.onnx DIMENSION=LOW:HIGH[:STEP] ... [--runs N]
[--turns N] [--json FILE]`. Sizes of these free dimensions are drawn, all others are 1. ort_lite
has its default providers.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness.conditions import conditions
from benchmarks.harness.engines import PEER_CPU, RAW
from benchmarks.harness.process_turns import measure_starts, module_variant
from benchmarks.harness.report import (
    NOTHING,
    absences,
    milliseconds,
    over,
    text_table,
    write_json,
)

if TYPE_CHECKING:
    from benchmarks.harness.measure import Measurement

OURS = "ort_lite[default]"
ENGINES = (OURS, RAW, PEER_CPU)
TURNS, RUNS = 3, 30
COLUMNS = ("model", "new", "vs OV", "vs CPU", "again", "vs OV", "vs CPU")
LEGEND = """
Milliseconds, medians.
new: ort_lite's run with lengths that it has not had.
again: the same run once more.
vs OV: over openvino alone.
vs CPU: over onnxruntime's CPU execution provider.
"""


class Sizes(NamedTuple):
    """Sizes that a free dimension may have: from `low` to `high`, in steps."""

    low: int
    high: int
    step: int = 1


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("sizes", nargs="+", type=_read_sizes, metavar="DIMENSION=LOW:HIGH[:STEP]")
    parser.add_argument("--runs", type=int, default=RUNS, help="how many lengths")
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each is timed")
    parser.add_argument("--json", type=Path, help="write all measurements to this file, too")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
        sizes = Path(folder) / "sizes.json"
        sizes.write_text(json.dumps(draw_sizes(dict(arguments.sizes), arguments.runs)))
        words = (str(arguments.model), str(sizes))
        variants = [
            module_variant(engine, "latency.lengths_process", engine, *words) for engine in ENGINES
        ]
        measured = measure_starts(variants, arguments.turns, arguments.model.name, survive=True)
    rows = [(arguments.model.stem, *cells(measured, "new"), *cells(measured, "again"))]
    results = {arguments.model.name: measured}
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND + absences(results))
    if arguments.json is not None:
        write_json(arguments.json, results)
    return 0


def draw_sizes(sizes: dict[str, Sizes], runs: int) -> list[dict[str, int]]:
    """The same in every run of this program; none twice, as long as there are others."""
    rng = random.Random(0)
    drawn: list[dict[str, int]] = []
    tries = 0
    while len(drawn) < runs:
        tries += 1
        one = {
            name: rng.randrange(low, high + 1, step) for name, (low, high, step) in sizes.items()
        }
        if one not in drawn or tries > 100 * runs:
            drawn.append(one)
    return drawn


def cells(measured: dict[str, Measurement], step: str) -> tuple[str, str, str]:
    """What ort_lite took, and that over what the others took."""
    steps = {engine: f"{engine} {step}" for engine in ENGINES if not measured[engine].absent}
    if OURS not in steps:
        return NOTHING, NOTHING, NOTHING
    raw, cpu = (
        over(measured, steps[OURS], steps[peer]) if peer in steps else NOTHING
        for peer in (RAW, PEER_CPU)
    )
    return milliseconds(measured, steps[OURS]), raw, cpu


def _read_sizes(text: str) -> tuple[str, Sizes]:
    name, _, numbers = text.partition("=")
    try:
        sizes = Sizes(*map(int, numbers.split(":")))
    except (TypeError, ValueError):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=LOW:HIGH[:STEP]") from None
    if not 1 <= sizes.low <= sizes.high or sizes.step < 1:
        raise argparse.ArgumentTypeError(f"'{text}' has no sizes")
    return name, sizes


if __name__ == "__main__":
    sys.exit(main())

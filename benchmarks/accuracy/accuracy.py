"""Whether the numbers are right: against onnxruntime, and reloaded against compiled.

`python -m benchmarks.accuracy.accuracy [MODEL ...]`. Ends with 1 if an output of any session is
further from onnxruntime's than its tolerance, or if a reloaded model does not give the compiled
one's numbers bit for bit.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.conditions import conditions
from benchmarks.harness.engines import EP, OnnxRuntime, OrtLite
from benchmarks.harness.measured_process import node_counts
from benchmarks.harness.report import text_table
from benchmarks.harness.samples import ask, make_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.harness.samples import Sample

    Array = np.ndarray[Any, np.dtype[Any]]

TOLERANCE = 1e-4
QUANTISED = {"rawi_lstm_int8": 2e-2}
"""Dynamic quantisation rounds by the run-time range: engines differ by steps of int8."""
TINY = float(np.finfo(np.float32).tiny)
COLUMNS = ("model", "nodes on OV", "plain", "external", "embedded", "tolerance", "reloaded bits")
LEGEND = """
plain, external, embedded: largest difference from onnxruntime's CPU execution provider over the
largest magnitude of that output, the worst output; integers, booleans and text must be equal.
reloaded bits: whether both contexts give the compiled model's outputs bit for bit.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One model's row, and whether it is right."""

    cells: tuple[str, ...]
    right: bool


def main() -> int:
    """Compare and print; 1 if anything is wrong."""
    arguments = ask(__doc__, 1)
    verdicts = []
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            verdicts.append(judge(make_sample(name, Path(folder))))
    rows = [verdict.cells for verdict in verdicts]
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND)
    wrong = [verdict.cells[0] for verdict in verdicts if not verdict.right]
    if wrong:
        sys.stdout.write(f"WRONG: {', '.join(wrong)}\n")
    return 1 if wrong else 0


def judge(sample: Sample) -> Verdict:
    """Run one model compiled and reloaded, and onnxruntime."""
    with np.load(sample.feed) as arrays:
        feed = {name: arrays[name] for name in arrays.files}
    ours = OrtLite()
    paths = {"plain": sample.path}
    for kind in ours.contexts:
        paths[kind] = sample.feed.with_name(f"{kind}_ctx.onnx")
        ours.write_context(sample.path, paths[kind], embed=kind == "embedded")
        if not paths[kind].exists():
            nothing = (sample.name, "0", *("-",) * 4, "NO CONTEXT")
            return Verdict(cells=nothing, right=False)
    outputs: dict[str, list[Array]] = {}
    nodes: dict[str, int] = {}
    for kind, path in paths.items():
        with ours.open(path) as session:
            outputs[kind] = session.run(None, feed)
            nodes = nodes or node_counts(session)
    expected = OnnxRuntime().open(sample.path).run(None, feed)
    apart = {kind: difference(actual, expected) for kind, actual in outputs.items()}
    tolerance = QUANTISED.get(sample.name, TOLERANCE)
    same = all(same_bits(outputs[kind], outputs["plain"]) for kind in ours.contexts)
    cells = (
        *(sample.name, f"{nodes.get(EP, 0)}/{sum(nodes.values())}"),
        *(f"{apart[kind]:.1e}" for kind in paths),
        *(f"{tolerance:.0e}", "same" if same else "DIFFER"),
    )
    return Verdict(cells=cells, right=same and max(apart.values()) <= tolerance)


def difference(actual: Sequence[Array], expected: Sequence[Array]) -> float:
    """Largest relative difference over all outputs; infinite where they are of two kinds."""
    return max(_max_difference(a, b) for a, b in zip(actual, expected, strict=True))


def _max_difference(actual: Array, expected: Array) -> float:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    if not np.issubdtype(expected.dtype, np.floating):
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    if not np.array_equal(np.isfinite(actual), np.isfinite(expected)):
        return float("inf")
    usable = np.isfinite(expected)
    if not usable.any():
        return 0.0
    a, b = actual[usable].astype(np.float64), expected[usable].astype(np.float64)
    return float(np.abs(a - b).max()) / max(float(np.abs(b).max()), TINY)


def same_bits(actual: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Whether two lists of outputs are the same to the bit."""
    return len(actual) == len(expected) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(actual, expected, strict=True)
    )


if __name__ == "__main__":
    sys.exit(main())

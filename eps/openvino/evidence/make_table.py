"""Makes the table out of tallies: what is kept for each version of each operator, and its text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import onnx

from eps.openvino.evidence.tally import every_operator
from eps.openvino.support.conditions import WRONG
from eps.openvino.support.table import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.openvino.evidence.tally import Tallies, Tally

    Operators = Mapping[str, Mapping[str, Mapping[str, int]]]
    """Operator to version to numbers of cases."""

SEEN_IN_MODELS = ("Cast", "CastLike")
"""Operators whose cases the suite makes with types that OpenVINO's binding cannot carry; real
models hold them to onnxruntime's numbers."""

CONTRIB = (
    "BiasGelu",
    "FastGelu",
    "FusedConv",
    "FusedMatMul",
    "Gelu",
    "MatMulNBits",
    "QuickGelu",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
)
"""com.microsoft operators, which the suite does not have; tests/unit/openvino compares each with
onnxruntime."""

ELSEWHERE: Mapping[str, int] = {"right": -1}
"""Entry of an operator whose evidence is not in the suite."""


def make_table(release: str, tallies: Tallies, stored: Operators) -> dict[str, Any]:
    """The table of a release: operators with a version that was seen right.

    Versions without evidence are listed too, so that a reader knows which one an opset means.

    Args:
        release: OpenVINO's version, e.g. "2026.4.1".
        tallies: Of this run.
        stored: The present table; kept for versions of which this run has no case.
    """
    operators: dict[str, Mapping[str, Mapping[str, int]]] = {}
    for name, versions in sorted(every_operator(release).operators.items()):
        kept = stored.get(name, {})
        evidence = {
            str(v): _entry(tallies[name, v]) if (name, v) in tallies else kept.get(str(v), _NONE)
            for v in sorted(versions)
        }
        if name in SEEN_IN_MODELS:
            operators[name] = dict.fromkeys(evidence, ELSEWHERE)
        elif name not in WRONG and any(
            e["right"] and not e.get("wrong") for e in evidence.values()
        ):
            operators[name] = evidence
    return {
        "format": FORMAT,
        "openvino": release,
        "onnx": onnx.__version__,
        "opset": onnx.defs.onnx_opset_version(),
        "operators": {**operators, **{f"com.microsoft:{n}": {"1": ELSEWHERE} for n in CONTRIB}},
    }


def table_text(table: Mapping[str, Any]) -> str:
    """JSON with a line for each operator."""
    head = json.dumps({key: value for key, value in table.items() if key != "operators"})
    lines = [
        f"  {json.dumps(op)}: {json.dumps(evidence)}" for op, evidence in table["operators"].items()
    ]
    body = ",\n".join(lines)
    return f'{head[:-1]}, "operators": {{\n{body}\n}}}}\n'


_NONE: Mapping[str, int] = {"right": 0}


def _entry(tally: Tally) -> dict[str, int]:
    counts = {"right": tally.right, "refused": tally.refused, "wrong": len(tally.wrong)}
    return {"right": tally.right, **{key: count for key, count in counts.items() if count}}

"""What onnx's inference finds wrong with a model, as errors with ONNX Runtime's codes and words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ort_lite.status import Fail, InvalidGraph

if TYPE_CHECKING:
    from ort_lite.status import OrtLiteError

_MISTAKEN = ("(op_type:MeanVarianceNormalization",)
"""Operators whose own inference fails in onnx 1.23 for nodes that are right: the Constant nodes of
their function bodies have an attribute in the wrong place."""

_SHADOWED = (
    "Inferred shape and existing shape differ",
    "differs from existing elem type",
    "Mismatched type: inferred=",
)
"""About a value whose name means something else further out, as initializers of branches may; for
values inside the graph no type was declared that inference could differ from."""

_INVALID = ("not in range [min=", "has unsupported type", "marked single but has an empty string")
"""In messages about what a node is; the others are about what its inputs are."""

_NODE = re.compile(r"\(op_type:(?P<op>[^,)]*)(?:, node name: (?P<name>.*?))?\): (?=\S)")
_SUMMARY = re.compile(r"^\[ShapeInferenceError\] (?:Inference error\(s\): )?(?=\(op_type:)")


def inference_error(text: str) -> OrtLiteError | None:
    """The error for a message of `infer_shapes` in its strict mode.

    Returns:
        None where part of the message is about nodes that are right all the same, for then the
        rest may be, too: what such nodes make has no type.
    """
    lines = [line for line in _SUMMARY.sub("", text).split("\n") if line]
    if any(line.startswith(_MISTAKEN) or _is_shadowed(line) for line in lines):
        return None
    message = _NODE.sub(lambda m: f"Node ({m['name'] or ''}) Op ({m['op']}) ", lines[0])
    if any(part in lines[0] for part in _INVALID):
        return InvalidGraph(f"This is an invalid model. {message}")
    return Fail(message)


def _is_shadowed(line: str) -> bool:
    return any(part in line for part in _SHADOWED)

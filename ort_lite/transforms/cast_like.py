"""CastLike as Cast, which needs no second input; at every level, as in ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.options import GraphOptimizationLevel
from ort_lite.transforms.attributes import integer
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ort_lite.transforms.mutable_graph import MutableGraph

OPERATOR = "CastLike"


def _cast(graph: MutableGraph, index: int) -> bool:
    """ONNX CastLike-15 to -25: Cast to the element type of the second input, where it is known."""
    node = graph.node(index)
    target = graph.element_type(node.inputs[1])
    if target is None:
        return False
    attributes = {**node.attributes, **integer("to", int(target))}
    cast = replace(node, op_type="Cast", inputs=node.inputs[:1], attributes=attributes)
    graph.replace(index, cast)
    return True


CAST_LIKE = RewriteRule(
    name="CastLikeToCast",
    operators=frozenset((OPERATOR,)),
    rewrite=_cast,
    level=GraphOptimizationLevel.ORT_DISABLE_ALL,
)

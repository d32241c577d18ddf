"""Tensors of more dimensions than OpenVINO compiles: 2026.4.1 fails, for 100,000 after minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    from eps.openvino.support.node_facts import NodeFacts

MOST_DIMENSIONS = 32
SHAPE_INPUTS = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
"""Operator to the input that has a size for each dimension of the result, whose own type may not
be inferred."""


def rank_problem(node: NodeFacts) -> str:
    """Which value of a node has too many; "" if none is known to."""
    for name in filter(None, (*node.node.inputs, *node.node.outputs)):
        shape = shape_of(node.graph, name)
        if shape is not None and len(shape) > MOST_DIMENSIONS:
            return _text(name, len(shape))
    position = SHAPE_INPUTS.get(node.node.op_type) if node.node.domain == "" else None
    sizes = node.shape(position) if position is not None else None
    if sizes and isinstance(sizes[0], int) and sizes[0] > MOST_DIMENSIONS:
        return _text(node.node.outputs[0], sizes[0])
    return ""


def _text(name: str, rank: int) -> str:
    return f"OpenVINO: '{name}' has {rank} dimensions, of at most {MOST_DIMENSIONS}"

"""Expansions to shapes that are computed and may contain a zero (seen with 2026.4.1).

OpenVINO moves a Broadcast behind the elementwise node that reads it, and computes the shape there
as the maximum of both shapes. Where one has a dimension of 0 and the other of 1, the result has 1,
and its elements are not the model's. A Concat of several such values writes beyond its memory. A
Broadcast does not move behind Pad, NonZero, ScatterND and Reshapes to another rank, which compute
such a value as ONNX does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.support.node_facts import shape_of
from ort_lite.ep import may_contain_zero

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

FIXED = frozenset(("NonZero", "Pad", "ScatterND", "Shape"))
"""Operators that a Broadcast stays in front of."""
DEEPEST = 8
"""Slices of slices that are looked at."""


def check_expansion(node: NodeFacts) -> str:
    """Decline a shape whose elements are not all known to be other than zero."""
    shape = node.node.inputs[-1]
    if _stays_in_front(node):
        return ""
    if may_contain_zero(node.graph, shape):
        return f"'{shape}' may contain a zero, and values without elements are expanded wrong"
    return ""


def _stays_in_front(node: NodeFacts) -> bool:
    """Whether only nodes read the value that OpenVINO moves no Broadcast behind."""
    (name,) = node.node.outputs
    return _has_fixed_readers(node.graph, name, 0)


def _has_fixed_readers(graph: Graph, name: str, depth: int) -> bool:
    readers = [graph.nodes[reader] for reader in graph.consumers(name)]
    is_output = any(info.name == name for info in graph.outputs)
    if not readers or is_output or depth == DEEPEST:
        return False
    return all(_is_fixed(graph, each, depth) for each in readers)


def _is_fixed(graph: Graph, reader: Node, depth: int) -> bool:
    """Whether a node is none that OpenVINO passes a Broadcast through, or takes out."""
    if reader.domain:
        return False
    if reader.op_type in FIXED:
        return True
    if reader.op_type == "Slice":  # of everything, it is taken out
        return _has_fixed_readers(graph, reader.outputs[0], depth + 1)
    if reader.op_type != "Reshape":
        return False
    before, after = (shape_of(graph, name) for name in (reader.inputs[0], reader.outputs[0]))
    if before is None or after is None or len(before) == len(after):
        return False
    # Two Reshapes become one, which may be to the rank before.
    behind = (graph.nodes[each] for each in graph.consumers(reader.outputs[0]))
    return all(each.op_type not in ("Reshape", "Squeeze", "Unsqueeze") for each in behind)

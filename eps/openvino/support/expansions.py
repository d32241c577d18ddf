"""Expansions to shapes that are computed and may contain a zero (seen with 2026.4.1).

OpenVINO moves a Broadcast behind the elementwise node that reads it, and computes the shape there
as the maximum of both shapes. Where one has a dimension of 0 and the other of 1, the result has 1,
and its elements are not the model's. A Concat of several such values writes beyond its memory. Pad
computes such a value as ONNX does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.ep import may_contain_zero

if TYPE_CHECKING:
    from eps.openvino.support.node_facts import NodeFacts


def check_expansion(node: NodeFacts) -> str:
    """Decline a shape whose elements are not all known to be other than zero."""
    shape = node.node.inputs[-1]
    if _is_read_by_pads(node):
        return ""
    if may_contain_zero(node.graph, shape):
        return f"'{shape}' may contain a zero, and values without elements are expanded wrong"
    return ""


def _is_read_by_pads(node: NodeFacts) -> bool:
    """Whether the value goes to Pad alone, which OpenVINO moves no Broadcast behind."""
    graph, (name,) = node.graph, node.node.outputs
    readers = graph.consumers(name)
    is_output = any(info.name == name for info in graph.outputs)
    return (
        bool(readers)
        and not is_output
        and all(graph.nodes[reader].op_type == "Pad" for reader in readers)
    )

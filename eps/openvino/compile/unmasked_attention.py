"""Attention without a mask, so that OpenVINO's CPU plug-in computes it right after a single key.

It makes one kernel of two products and the Softmax between them (2026.4.1). If the first run has a
single key, its Softmax over more than eight of them is wrong in all later runs: not divided by the
whole sum. Scores that something is added to are right. So the smallest normal number is added to
those of free length: it changes no score that is not itself as small, and no result of Softmax.
"""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

ATTENTION, PRODUCT, SOFTMAX = "Attention", "MatMul", "Softmax"
RESHAPING = ("Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators whose other inputs are no operands of the scores."""
SUMMANDS = {
    DataType.FLOAT: struct.pack("<f", 2.0**-126),
    DataType.FLOAT16: struct.pack("<e", 2.0**-14),
}
"""The smallest normal number of a type."""


def add_to_scores(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with something added to such scores.

    Args:
        definition: To be rewritten; products may be what other rewritings made.
        graph: The same, or before other nodes of it were rewritten; knows the types.
    """
    writer = NodeWriter(definition, "scores")
    makers = {name: node for node in definition.nodes for name in node.outputs}
    changed = False
    for node in definition.nodes:
        kind = DataType(element_type_of(graph, node.inputs[0]) or 0) if node.inputs else None
        if kind not in SUMMANDS or not (
            _is_unmasked(node, graph) or _is_free(node, graph, definition, makers)
        ):
            writer.nodes.append(node)
            continue
        changed = True
        data = SUMMANDS[kind]
        if node.op_type == ATTENTION:
            mask = writer.constant(kind, (1, 1), data)
            inputs = (*node.inputs[:3], mask, *node.inputs[4:])
        else:
            inputs = (writer.add("Add", node.inputs[0], writer.constant(kind, (), data)),)
        writer.nodes.append(replace(node, inputs=inputs))
    return writer.finish(definition) if changed else definition


def _is_unmasked(node: Node, graph: Graph) -> bool:
    """Whether a node is Attention-23 without a mask, for a number of keys that is free."""
    if not _is_of(node, ATTENTION) or any(node.inputs[3:4]):
        return False
    shapes = [shape_of(graph, name) for name in (*node.inputs[1:2], *node.inputs[4:5]) if name]
    return not all(shape and isinstance(shape[-2], int) for shape in shapes)


def _is_free(node: Node, graph: Graph, definition: GraphDef, makers: Mapping[str, Node]) -> bool:
    """Whether a Softmax is of scores without a mask, for a number of keys that is free."""
    shape = shape_of(graph, node.inputs[0])
    if not _is_of(node, SOFTMAX) or (shape and isinstance(shape[-1], int)):
        return False
    name = node.inputs[0]
    while name in makers:
        made = makers[name]
        if _is_of(made, PRODUCT):
            return True
        changing = made.inputs[:1] if made.op_type in RESHAPING else made.inputs
        varying = [one for one in changing if _varies(one, graph, definition)]
        if len(varying) != 1:
            return False
        name = varying[0]
    return False


def _varies(name: str, graph: Graph, definition: GraphDef) -> bool:
    """Whether an operand is neither a number nor left out."""
    constant = graph.constant(name) or definition.initializers.get(name)
    return bool(name) and (constant is None or prod(constant.dims) != 1)


def _is_of(node: Node, op_type: str) -> bool:
    return node.op_type == op_type and not node.domain

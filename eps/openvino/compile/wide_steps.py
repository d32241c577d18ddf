"""QuantizeLinear to 16 bits in operators that OpenVINO leaves as they are.

OpenVINO 2026.4.1 takes such a quantisation, with the DequantizeLinear behind it, out of the model
(its pass FQStripping): values are then neither rounded nor clipped. One on its own is computed from
the bounds of the range, whose rounding may move a step. Written out, the quotient is exact.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of, shape_of
from eps.openvino.support.wide_steps import RANGES, find_step_type
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "QuantizeLinear"


def write_out_steps(definition: GraphDef, graph: Graph) -> tuple[GraphDef, frozenset[str]]:
    """A graph without QuantizeLinear to 16 bits, and the names of the quotients to be exact.

    Args:
        definition: To be rewritten.
        graph: The same, or before other nodes of it were rewritten; knows the types.
    """
    writer = NodeWriter(definition, "steps")
    quotients: set[str] = set()
    for node in definition.nodes:
        kind = _find_type(node, definition, graph)
        if kind is not None and kind in RANGES:
            quotients.add(_write_out(node, kind, definition, graph, writer))
        else:
            writer.nodes.append(node)
    return (
        (writer.finish(definition), frozenset(quotients))
        if quotients
        else (definition, frozenset())
    )


def _find_type(node: Node, definition: GraphDef, graph: Graph) -> int | None:
    """Element type of the steps of a QuantizeLinear; None for another node."""
    if node.op_type != OPERATOR or node.domain:
        return None
    zero = definition.initializers.get(node.inputs[2]) if len(node.inputs) > 2 else None
    return zero.data_type if zero is not None else find_step_type(node, graph)


def _write_out(
    node: Node, kind: int, definition: GraphDef, graph: Graph, writer: NodeWriter
) -> str:
    """Add the nodes of one; the name of the quotient."""
    name, scale, zero = (*node.inputs, "")[:3]
    factor = definition.initializers.get(scale) or graph.constant(scale)
    assert factor is not None, "the support code declines another scale"
    dims = _place(node, factor.dims, graph)
    if element_type_of(graph, name) not in (DataType.FLOAT, None):
        name = writer.add("Cast", name, to=DataType.FLOAT)
    data = to_numpy(factor).astype(np.float32)
    quotient = writer.add("Div", name, writer.constant(DataType.FLOAT, dims, data.tobytes()))
    steps = writer.add("Round", quotient)
    if zero:
        point = definition.initializers.get(zero)
        if point is None:
            shift = writer.add("Cast", zero, to=DataType.FLOAT)
            shift = writer.add("Reshape", shift, writer.integers(*dims))
        else:
            numbers = to_numpy(point).astype(np.float32)
            shift = writer.constant(DataType.FLOAT, dims, numbers.tobytes())
        steps = writer.add("Add", steps, shift)
    low, high = (writer.number(bound) for bound in RANGES[kind])
    writer.add("Cast", writer.add("Clip", steps, low, high), output=node.outputs[0], to=kind)
    return quotient


def _place(node: Node, dims: tuple[int, ...], graph: Graph) -> tuple[int, ...]:
    """Dimensions with which scales broadcast to the input."""
    if prod(dims) == 1:
        return ()
    axis = node.attributes.get("axis")
    place = axis.value if axis is not None and isinstance(axis.value, int) else 1
    if place < 0:
        return (*dims, *(1,) * (-place - 1))
    shape = shape_of(graph, node.inputs[0])
    assert shape is not None, "the support code declines an unknown rank"
    return (*dims, *(1,) * (len(shape) - place - 1))

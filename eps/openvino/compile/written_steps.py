"""QuantizeLinear in operators that OpenVINO leaves as they are, where its own goes wrong.

eps/openvino/support/written_steps.py says which, and why. The quotient is exact.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of, shape_of
from eps.openvino.support.written_steps import RANGES, find_axis, find_step_type, is_written_out
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph


def write_out_steps(definition: GraphDef, graph: Graph) -> tuple[GraphDef, frozenset[str]]:
    """A graph without such nodes, and the names of the quotients to be exact.

    Args:
        definition: To be rewritten.
        graph: The same, or before other nodes of it were rewritten; knows the types.
    """
    writer = NodeWriter(definition, "steps")
    quotients: set[str] = set()
    for node in definition.nodes:
        if is_written_out(node, graph):
            quotients.add(_write_out(node, graph, writer))
        else:
            writer.nodes.append(node)
    return (writer.finish(definition) if quotients else definition), frozenset(quotients)


def _write_out(node: Node, graph: Graph, writer: NodeWriter) -> str:
    """Add the nodes of one; the name of the quotient."""
    name, scale, zero = (*node.inputs, "")[:3]
    factor, kind = graph.constant(scale), find_step_type(node, graph)
    assert factor is not None, "the support code declines another scale"
    assert kind is not None, "of unknown types none is written out"
    dims = _place(node, factor.dims, graph)
    if element_type_of(graph, name) not in (DataType.FLOAT, None):
        name = writer.add("Cast", name, to=DataType.FLOAT)
    data = to_numpy(factor).astype(np.float32)
    quotient = writer.add("Div", name, writer.constant(DataType.FLOAT, dims, data.tobytes()))
    steps = writer.add("Round", quotient)
    if zero:
        point = graph.constant(zero)
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
    axis, shape = find_axis(node), shape_of(graph, node.inputs[0])
    if axis >= 0:
        assert shape is not None, "the support code declines an unknown rank"
        axis -= len(shape)
    return (*dims, *(1,) * (-axis - 1))

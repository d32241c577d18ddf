"""Writes DFT so that OpenVINO's conversion gives ONNX's axis and shape (ONNX DFT-17, DFT-20).

eps/openvino/support/fourier.py says which, and what the conversion does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import Attribute, AttributeType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.fourier import CONVERTED_AXIS, OLDEST_WITH_AXIS_INPUT, find_axis
from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "DFT"


def write_out_transforms(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with such DFT; `graph` is the same with its types."""
    writer = NodeWriter(definition, "dft")
    for node in definition.nodes:
        if node.op_type == OPERATOR and not node.domain:
            _write(node, graph, writer)
        else:
            writer.nodes.append(node)
    return writer.finish(definition)


def _write(node: Node, graph: Graph, writer: NodeWriter) -> None:
    """The DFT with what its axis and its shape need; alone where they need nothing."""
    order = list(range(len(shape_of(graph, node.inputs[0]) or ())))
    axis = find_axis(node, graph)
    by_input = graph.opset_imports.get("", 1) >= OLDEST_WITH_AXIS_INPUT
    is_swapped = by_input and axis is not None and axis != CONVERTED_AXIS
    attribute = node.attributes.get("onesided")
    is_onesided = bool(attribute and attribute.value)
    attributes = dict(node.attributes)
    if not by_input and axis is not None:  # a negative one is counted without the last dimension
        attributes["axis"] = Attribute("axis", AttributeType.INT, axis)
    if not is_swapped and not is_onesided and attributes == node.attributes:
        writer.nodes.append(node)
        return
    (output,), inputs = node.outputs, list(node.inputs)
    if is_swapped and axis is not None:
        order[axis], order[CONVERTED_AXIS] = CONVERTED_AXIS, axis
        inputs[0] = writer.add("Transpose", inputs[0], perm=tuple(order))
        length = inputs[1] if len(inputs) > 1 else ""
        inputs[1:] = [length, writer.integers(CONVERTED_AXIS, scalar=True)]
    is_last = not is_onesided and not is_swapped
    value = writer.add(OPERATOR, *inputs, output=output if is_last else "", **attributes)
    if is_onesided:
        shape = writer.integers(*(0 for _ in order[1:]), 2)
        value = writer.add("Reshape", value, shape, output="" if is_swapped else output)
    if is_swapped:
        writer.add("Transpose", value, output=output, perm=tuple(order))

"""Softmax of opset 11 and 12 over all axes from one on, for OpenVINO.

It computes them along that axis alone, as opset 13 has it (2026.4.1). Softmax of older opsets, and
LogSoftmax and Hardmax of all, are right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "Softmax"
OPSETS = (11, 12)
"""Of ai.onnx."""
DEFAULT_AXIS = 1


def flatten_softmax(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with such Softmaxes between a Flatten and a Reshape.

    Args:
        definition: To be rewritten.
        graph: Has the shapes of its values, as far as they are known.
    """
    if graph.opset_imports.get("", 1) not in OPSETS:
        return definition
    writer = NodeWriter(definition, "softmax")
    for node in definition.nodes:
        if node.op_type != OPERATOR or node.domain or _is_along_one_axis(node, graph):
            writer.nodes.append(node)
            continue
        flat = writer.add("Flatten", node.inputs[0], axis=_axis_of(node))
        result = writer.add(OPERATOR, flat, axis=1)
        shape = writer.add("Shape", node.inputs[0])
        writer.add("Reshape", result, shape, output=node.outputs[0])
    return writer.finish(definition) if len(writer.nodes) > len(definition.nodes) else definition


def _axis_of(node: Node) -> int:
    axis = node.attributes.get("axis")
    return axis.value if axis is not None and isinstance(axis.value, int) else DEFAULT_AXIS


def _is_along_one_axis(node: Node, graph: Graph) -> bool:
    """Whether all axes behind that of a Softmax have the size 1, or there is none."""
    axis, shape = _axis_of(node), shape_of(graph, node.inputs[0])
    if shape is None:
        return axis == -1
    return all(dim == 1 for dim in shape[axis % len(shape) + 1 :]) if shape else True

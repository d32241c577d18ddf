"""Linear Resize and Upsample of integers in float32, for OpenVINO.

ONNX cuts fractions off, as a Cast does, and OpenVINO rounds (2026.4.1): a pixel between 3 and 4 is
3 or 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATORS = ("Resize", "Upsample")
MODES = (b"linear", b"bilinear")
"""The second is Upsample-1's."""
INTEGERS = (DataType.INT8, DataType.UINT8, DataType.INT32)
"""Types that onnxruntime interpolates."""


def resize_as_floats(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with such nodes between two Casts.

    Args:
        definition: To be rewritten.
        graph: Has the types of its values.
    """
    writer = NodeWriter(definition, "resized")
    for node in definition.nodes:
        kind = _integer_type(node, graph)
        if kind is None:
            writer.nodes.append(node)
            continue
        floats = writer.add("Cast", node.inputs[0], to=DataType.FLOAT)
        result = writer.add(node.op_type, floats, *node.inputs[1:], output="", **node.attributes)
        writer.add("Cast", result, output=node.outputs[0], to=kind)
    return writer.finish(definition) if len(writer.nodes) > len(definition.nodes) else definition


def _integer_type(node: Node, graph: Graph) -> int | None:
    """Element type of an affected node's values; None for any other node."""
    mode = node.attributes.get("mode")
    if node.op_type not in OPERATORS or node.domain or mode is None or mode.value not in MODES:
        return None
    kind = element_type_of(graph, node.inputs[0])
    return kind if kind in INTEGERS else None

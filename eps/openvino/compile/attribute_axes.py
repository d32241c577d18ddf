"""ReduceL1 and ReduceLogSum of opset 13 to 17 in other operators, for OpenVINO.

It reads axes there from an input, which they have from opset 18 on, and reduces all axes where they
are an attribute (2026.4.1). Known shapes contradict that, and free ones do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.compile.node_writer import NodeWriter

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Attribute, GraphDef, Node
    from ort_lite.ep import Graph

OPERATORS = ("ReduceL1", "ReduceLogSum")
OPSETS = range(13, 18)
"""Of ai.onnx; ReduceSum has its axes as an input in all of them."""


def write_out_reductions(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with a ReduceSum for each such reduction, of Abs or before Log."""
    if graph.opset_imports.get("", 1) not in OPSETS:
        return definition
    writer = NodeWriter(definition, "axes")
    for node in definition.nodes:
        if node.op_type not in OPERATORS or node.domain or "axes" not in node.attributes:
            writer.nodes.append(node)
        elif node.op_type == "ReduceL1":
            _write_sum(writer, writer.add("Abs", node.inputs[0]), node, node.outputs[0])
        else:
            total = _write_sum(writer, node.inputs[0], node, "")
            writer.add("Log", total, output=node.outputs[0])
    return writer.finish(definition) if len(writer.nodes) > len(definition.nodes) else definition


def _write_sum(writer: NodeWriter, data: str, node: Node, output: str) -> str:
    axes = node.attributes["axes"].value
    assert isinstance(axes, tuple), "the model was checked"
    held = writer.integers(*(int(axis) for axis in axes))
    rest: dict[str, Attribute] = {
        name: item for name, item in node.attributes.items() if name != "axes"
    }
    return writer.add("ReduceSum", data, held, output=output, **rest)

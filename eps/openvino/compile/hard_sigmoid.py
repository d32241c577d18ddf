"""HardSigmoid as a product, a sum and a Clip, for OpenVINO's CPU plug-in.

Its own is a reference implementation in plain layouts (2026.4.1): between convolutions, tensors are
reordered before and after it. In quantised mobile networks that took a third of a run. The others
become part of the kernel with what is around them. Of quantised values and before a quantisation,
they would be computed from the integers, some steps away; a maximum with the lowest float is
between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.compile.hard_swish import DEFAULT_ALPHA, DEFAULT_BETA, HARD_SIGMOID, read_number
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

LOWEST = -3.4028234663852886e38
CLIP_WITH_INPUTS = 11
"""Version of Clip from which on its bounds are inputs."""


def write_out_gates(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph without HardSigmoid of float32; itself where there is none.

    Args:
        definition: To be rewritten.
        graph: The same, or before other nodes of it were rewritten; knows the element types.
    """
    if graph.opset_imports.get("", 1) < CLIP_WITH_INPUTS:
        return definition
    gates = {id(node) for node in definition.nodes if _is_written_out(node, graph)}
    if not gates:
        return definition
    writer = NodeWriter(definition, "gate")
    is_quantised = any(node.op_type == "DequantizeLinear" for node in definition.nodes)
    for node in definition.nodes:
        if id(node) in gates:
            alpha = writer.number(read_number(node, "alpha", DEFAULT_ALPHA))
            beta = writer.number(read_number(node, "beta", DEFAULT_BETA))
            x = node.inputs[0]
            if is_quantised:
                x = writer.add("Max", x, writer.number(LOWEST))
            line = writer.add("Add", writer.add("Mul", x, alpha), beta)
            ends = writer.number(0), writer.number(1)
            writer.add("Clip", line, *ends, output=node.outputs[0])
        else:
            writer.nodes.append(node)
    return writer.finish(definition)


def _is_written_out(node: Node, graph: Graph) -> bool:
    return (
        node.op_type == HARD_SIGMOID
        and not node.domain
        and element_type_of(graph, node.inputs[0]) == DataType.FLOAT
        # Of negative factors behind a Relu, OpenVINO's 8-bit transformations lose the sign.
        and read_number(node, "alpha", DEFAULT_ALPHA) >= 0
    )

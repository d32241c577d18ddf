"""QuantizeLinear to 16 bits, which is written out (compile/wide_steps.py), and when."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.support.node_facts import element_type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Node
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

RANGES: Mapping[int, tuple[float, float]] = {
    DataType.INT16: (-32768.0, 32767.0),
    DataType.UINT16: (0.0, 65535.0),
}


def find_step_type(node: Node, graph: Graph) -> int | None:
    """Element type of the results of a QuantizeLinear; None if it is unknown."""
    if len(node.inputs) > 2 and node.inputs[2]:
        return element_type_of(graph, node.inputs[2])
    given = node.attributes.get("output_dtype")
    if given is not None and isinstance(given.value, int) and given.value:
        return given.value
    return DataType.UINT8


def wide_steps_problem(facts: NodeFacts) -> str:
    """Why a QuantizeLinear with a constant scale cannot be written out; "" if it need not be."""
    if find_step_type(facts.node, facts.graph) not in RANGES:
        return ""
    scale = facts.constant(1)
    if scale is not None and prod(scale.dims) != 1 and facts.shape(0) is None:
        return "steps of 16 bits by channel are not written out for an unknown rank"
    return ""

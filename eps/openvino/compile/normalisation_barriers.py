"""Keeps OpenVINO from moving scales of quantised values into a normalisation, where they are lost.

Its low precision transformations move a scale past sums and sizes, and drop it at a normalisation,
whose result does not depend on it but for epsilon: the variance is then that of the integers. An
embedding of variance 4e-4 with an epsilon of 1e-5 came out 0.7 % wrong with OpenVINO 2026.4.1. They
move nothing past a maximum, here with minus infinity.

A normalisation is one of ONNX's operators, or written out: OpenVINO joins what begins with the
difference of a value and its mean.

Reductions are kept from quantised integers by the same maximum: sums of signed bytes [n, 32, 4]
along the second axis come out as 0, and factors for each element are moved behind a sum.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType, TensorType
from eps.openvino.compile.node_writer import NodeWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

NORMALISED = {
    "LayerNormalization": 1,
    "InstanceNormalization": 1,
    "GroupNormalization": 1,
    "SkipLayerNormalization": 2,
}
"""By operator how many of its first inputs are what it normalises, or are added up to that."""
MEAN, DIFFERENCE, REDUCTIONS = "ReduceMean", "Sub", "Reduce"
DEQUANTIZE = "DequantizeLinear"
LOWEST = {
    DataType.FLOAT: struct.pack("<f", -float("inf")),
    DataType.FLOAT16: struct.pack("<e", -float("inf")),
}


def keep_epsilons(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph with a Max before each normalisation and reduction; itself where there is none.

    Args:
        definition: To be rewritten; it has quantised values.
        graph: The same, or before other nodes of it were rewritten; knows the element types.
    """
    means = {node.outputs[0]: node.inputs[0] for node in definition.nodes if node.op_type == MEAN}
    centred = {
        node.inputs[0]
        for node in definition.nodes
        if node.op_type == DIFFERENCE and means.get(node.inputs[1]) == node.inputs[0]
    }
    makers = {name: node for node in definition.nodes for name in node.outputs}
    writer = NodeWriter(definition, "normalised")
    kept: dict[str, str] = {}
    for node in definition.nodes:
        inputs = list(node.inputs)
        for place in _places(node, centred, graph, makers):
            name = inputs[place]
            if name not in kept and (lowest := LOWEST.get(element_type(graph, name))):
                constant = writer.constant(element_type(graph, name), (), lowest)
                kept[name] = writer.add("Max", constant, name)  # the second may be NaN
            inputs[place] = kept.get(name, name)
        writer.nodes.append(replace(node, inputs=tuple(inputs)))
    return writer.finish(definition) if kept else definition


def _places(node: Node, centred: set[str], graph: Graph, makers: Mapping[str, Node]) -> range:
    """Of the inputs that are normalised, or reduced."""
    if node.op_type in (MEAN, DIFFERENCE) and node.inputs[0] in centred:
        return range(1)
    if node.op_type.startswith(REDUCTIONS):
        return range(int(_may_be_integers(node.inputs[0], graph, makers)))
    return range(NORMALISED.get(node.op_type, 0))


def _may_be_integers(name: str, graph: Graph, makers: Mapping[str, Node]) -> bool:
    """Whether a value is dequantised, or computed of one that is and of constants."""
    while name in makers:
        node = makers[name]
        if node.op_type == DEQUANTIZE:
            return True
        varying = [one for one in node.inputs if one and not _is_constant(one, graph, makers)]
        if len(set(varying)) != 1:
            return False
        name = varying[0]
    return False


def _is_constant(name: str, graph: Graph, makers: Mapping[str, Node]) -> bool:
    """Whether a value is a constant, or dequantised from one."""
    if name in makers and makers[name].op_type == DEQUANTIZE:
        name = makers[name].inputs[0]
    return graph.constant(name) is not None


def element_type(graph: Graph, name: str) -> DataType:
    """Of a value; other rewritings make float32 alone."""
    value_type = graph.type_of(name)
    return DataType(value_type.elem_type) if isinstance(value_type, TensorType) else DataType.FLOAT

"""Keeps OpenVINO from moving the factor of a mask behind a sum, where the summand is lost.

Its low precision transformations take a factor for the scale of quantised values and move it:
`m * s + 1` becomes `(m + 1 / s) * s`. The masks of language models are the lowest float times
truth values. There 1 / s is too small for the CPU, and the sum is without its 1: in a quantised T5,
each token looked at all of them (OpenVINO 2026.4.1). Nothing is moved past a maximum, here with
minus infinity.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType, Tensor
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.compile.normalisation_barriers import LOWEST, element_type
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

FACTORS = ("Div", "Mul")
LARGEST = 1e30
"""Magnitude of a factor by which a common number can be divided in float32."""
MOST_ELEMENTS = 64
"""Of a constant that is looked at: those of masks have one."""
SPREADING = frozenset(
    (
        "Cast",
        "Expand",
        "Flatten",
        "Identity",
        "Reshape",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    )
)
"""Operators whose results have the elements of their first input."""
FILL = "ConstantOfShape"


def keep_summands(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph with a Max behind each product with such a factor; itself without any.

    Args:
        definition: To be rewritten; it quantises values.
        graph: The same, or before other nodes of it were rewritten; knows the element types.
    """
    extreme = _find_extreme(definition)
    if not extreme:
        return definition
    writer = NodeWriter(definition, "mask")
    for node in definition.nodes:
        kind = element_type(graph, node.outputs[0])
        if node.op_type not in FACTORS or kind not in LOWEST or extreme.isdisjoint(node.inputs):
            writer.nodes.append(node)
            continue
        lowest = writer.constant(kind, (), LOWEST[kind])
        product = writer.add(node.op_type, *node.inputs)
        writer.add("Max", product, lowest, output=node.outputs[0])
    return writer.finish(definition)


def _find_extreme(definition: GraphDef) -> set[str]:
    """Names of constants, and of what is spread from them, with an element out of bounds."""
    extreme = {name for name, tensor in definition.initializers.items() if _is_extreme(tensor)}
    for node in definition.nodes:
        spreads = node.op_type in SPREADING and node.inputs[0] in extreme
        if spreads or (node.op_type == FILL and _fills_extreme(node)):
            extreme.add(node.outputs[0])
    return extreme


def _fills_extreme(node: Node) -> bool:
    value = node.attributes.get("value")
    return value is not None and isinstance(value.value, Tensor) and _is_extreme(value.value)


def _is_extreme(tensor: Tensor) -> bool:
    if tensor.data_type != DataType.FLOAT or prod(tensor.dims) > MOST_ELEMENTS:
        return False
    return bool((np.abs(to_numpy(tensor)) > LARGEST).any())

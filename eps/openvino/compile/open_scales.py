"""Takes scales of attention into the weights before it, for OpenVINO's CPU plug-in.

The plug-in computes the scale together with the product that makes the keys, in a kernel that it
makes for each number of rows: 1.6 ms for each new length of a text (2026.4.1). A product alone
takes a kernel that it has for all of them (open_products.py). A scale in the weights and the bias
of the queries is computed once. It rounds them, as it would have rounded the scores.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.compile.open_products import REASON, find_open_product
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

LEAST = 2.0**-20
"""Of a factor: smaller ones might make denormal numbers of weights."""
PRODUCT = "MatMul"
MOVING = ("Identity", "Reshape", "Transpose")
"""Operators between a product and its scale, which keep the elements of their first input."""


def fold_scales(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """`definition` with such scales in weights, and a note; `graph` has its types."""
    factors: dict[str, float] = {}
    unscaled: dict[str, str] = {}
    unchanged = {id(node) for node in definition.nodes}
    for node in graph.nodes:
        data, factor = _read_scale(node, graph)
        scaled = _find_scaled(data, graph) if data else ()
        if scaled and all(id(one) in unchanged for one in (node, *scaled)):
            factors |= dict.fromkeys((made.outputs[0] for made in scaled), factor)
            unscaled[node.outputs[0]] = data
    if not unscaled:
        return definition, []
    writer = NodeWriter(definition, "scale")
    for node in definition.nodes:
        name = node.outputs[0]
        if name in unscaled:
            writer.add("Identity", unscaled[name], output=name)
        elif name in factors:
            data, constant = node.inputs
            if graph.constant(constant) is None:
                data, constant = constant, data
            weights = writer.add("Mul", constant, writer.number(factors[name]))
            writer.nodes.append(replace(node, inputs=(data, weights)))
        else:
            writer.nodes.append(node)
    note = f"{len(unscaled)} scales multiplied into weights before them: {REASON}"
    return writer.finish(definition), [note]


def _read_scale(node: Node, graph: Graph) -> tuple[str, float]:
    """What a node multiplies by a constant of at most 1, and that; empty for any other node."""
    if node.domain or node.op_type not in ("Div", "Mul"):
        return "", 1.0
    for data, other in (node.inputs, node.inputs[::-1])[: 2 if node.op_type == "Mul" else 1]:
        constant = graph.constant(other)
        if constant is None or prod(constant.dims) != 1 or len(constant.dims) > 1:
            continue
        if constant.data_type == DataType.FLOAT:
            number = float(to_numpy(constant).item())
            factor = number if node.op_type == "Mul" else 1 / number if number else 0.0
            return (data, factor) if LEAST <= factor <= 1 else ("", 1.0)
    return "", 1.0


def _find_scaled(name: str, graph: Graph) -> tuple[Node, ...]:
    """The product, and its bias, that a scale of `name` may as well be applied to."""
    outputs = {info.name for info in graph.outputs}
    crossed = False
    while _count_readers(name, graph) == 1 and name not in outputs:
        product = find_open_product(name, graph)
        if product:
            alone = all(_count_readers(made.outputs[0], graph) == 1 for made in product)
            return product if alone and product[0].op_type == PRODUCT else ()
        index = graph.producer(name)
        node = None if index is None else graph.nodes[index]
        if node is None or node.domain or (node.op_type == PRODUCT and crossed):
            return ()
        if node.op_type not in (*MOVING, PRODUCT):
            return ()
        crossed = crossed or node.op_type == PRODUCT
        name = node.inputs[0]
    return ()


def _count_readers(name: str, graph: Graph) -> int:
    """Nodes that read the elements of a value."""
    return sum(graph.nodes[index].op_type != "Shape" for index in graph.consumers(name))

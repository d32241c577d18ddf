"""Keeps activations out of matrix products of free lengths, for OpenVINO's CPU plug-in.

The plug-in computes Gelu or Relu together with the product before it, in a kernel that it makes
for each number of rows: 1.6 ms for each new length of a text (2026.4.1). A product alone takes a
kernel that it has for all of them, 30 us, and is no slower. It takes no operator into a product
whose result has a second reader. So Gelu is written as x * (0.5 + 0.5 * erf(x / sqrt(2))), where
the halves are exact, and Relu as the larger of x and of x clipped to 0.
"""

from __future__ import annotations

from collections import Counter
from math import isclose, prod, sqrt
from typing import TYPE_CHECKING, NamedTuple

from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of, shape_of
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OLDEST_OPSET = 12
"""Of ai.onnx from which on Clip has bounds as inputs, and Max takes what broadcasts."""
PRODUCTS = ("Gemm", "MatMul")
REASON = "OpenVINO would make a kernel for each length"


class _Gelu(NamedTuple):
    """What is x * (1 + share) * 0.5.

    Attributes:
        x: The product.
        share: An Erf or Tanh.
        between: Outputs of the nodes but the last one, which nothing else reads.
    """

    x: str
    share: str
    between: tuple[str, ...]


def open_products(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """`definition` with such activations written out, and a note; `graph` has its types."""
    if graph.opset_imports.get("", 1) < OLDEST_OPSET:
        return definition, []
    writer = NodeWriter(definition, "open")
    present = {node.outputs[0] for node in definition.nodes}
    gelus = {
        name: gelu
        for name, gelu in _find_gelus(graph).items()
        if present.issuperset((name, gelu.share, *gelu.between))
    }
    gone = {name for gelu in gelus.values() for name in gelu.between}
    opened: Counter[str] = Counter()
    for node in definition.nodes:
        name = node.outputs[0]
        if name in gelus:
            _write_gelu(gelus[name].x, gelus[name].share, name, writer)
            opened["Gelu"] += 1
        elif node.op_type == "Relu" and find_open_product(node.inputs[0], graph):
            bound = writer.number(0.0)
            least = writer.add("Clip", node.inputs[0], bound, bound)
            writer.add("Max", node.inputs[0], least, output=name)
            opened["Relu"] += 1
        elif _is_exact_gelu(node) and find_open_product(node.inputs[0], graph):
            scaled = writer.add("Mul", node.inputs[0], writer.number(sqrt(0.5)))
            _write_gelu(node.inputs[0], writer.add("Erf", scaled), name, writer)
            opened["Gelu"] += 1
        elif name not in gone:
            writer.nodes.append(node)
    if not opened:
        return definition, []
    names = ", ".join(f"{op_type} x{count}" for op_type, count in sorted(opened.items()))
    return writer.finish(definition), [f"{names} kept out of products: {REASON}"]


def _write_gelu(x: str, share: str, output: str, writer: NodeWriter) -> None:
    half = writer.number(0.5)
    factor = writer.add("Add", writer.add("Mul", share, half), half)
    writer.add("Mul", x, factor, output=output)


def _is_exact_gelu(node: Node) -> bool:
    """Whether a node is Gelu-20 without an approximation, or that of com.microsoft."""
    attribute = node.attributes.get("approximate")
    return node.op_type == "Gelu" and (attribute is None or attribute.value == b"none")


def find_open_product(name: str, graph: Graph) -> tuple[Node, ...]:
    """The nodes of a product by constants, and of its bias, if its rows have a free number.

    Sizes of the first axis are not looked at: batches seldom change. Empty for any other value.
    """
    shape = shape_of(graph, name)
    if not shape or element_type_of(graph, name) != DataType.FLOAT:
        return ()
    if all(isinstance(size, int) for size in shape[1:-1]):
        return ()
    made = _find_maker(name, graph)
    bias: tuple[Node, ...] = ()
    if made is not None and _is_of(made, "Add"):
        summands = [one for one in made.inputs if graph.constant(one) is None]
        bias = (made,)
        made = _find_maker(summands[0], graph) if len(summands) == 1 else None
    if made is None or made.op_type not in PRODUCTS or made.domain:
        return ()
    return () if graph.constant(made.inputs[1]) is None else (made, *bias)


def _find_maker(name: str, graph: Graph) -> Node | None:
    index = graph.producer(name)
    return None if index is None else graph.nodes[index]


def _find_gelus(graph: Graph) -> dict[str, _Gelu]:
    """Gelus of products, with erf or its approximation by tanh, by their output."""
    gelus = {}
    for node in graph.nodes:
        if not _is_of(node, "Erf") and not _is_of(node, "Tanh"):
            continue
        share = node.outputs[0]
        added = _find_reader(share, "Add", graph)
        if added is None or not _is_number(_operand(added, share), 1.0, graph):
            continue
        sum_ = added.outputs[0]
        product = _find_reader(sum_, "Mul", graph)
        if product is None:
            continue
        x = _operand(product, sum_)
        last = _find_reader(product.outputs[0], "Mul", graph)
        if find_open_product(x, graph):
            if last is not None and _is_number(_operand(last, product.outputs[0]), 0.5, graph):
                between = (sum_, product.outputs[0])
                gelus[last.outputs[0]] = _Gelu(x, share, between)
        elif half := _find_half(x, graph):
            gelus[product.outputs[0]] = _Gelu(half, share, (sum_, x))
    return gelus


def _find_half(name: str, graph: Graph) -> str:
    """The product that a value, read once, is half of; empty for any other value."""
    made = _find_maker(name, graph)
    if made is None or not _is_of(made, "Mul") or _find_reader(name, "Mul", graph) is None:
        return ""
    for x, other in (made.inputs, made.inputs[::-1]):
        if _is_number(other, 0.5, graph) and find_open_product(x, graph):
            return x
    return ""


def _find_reader(name: str, op_type: str, graph: Graph) -> Node | None:
    """The node that alone reads a value, once, if it is one of these."""
    readers = graph.consumers(name)
    if len(readers) != 1 or any(info.name == name for info in graph.outputs):
        return None
    node = graph.nodes[readers[0]]
    return node if _is_of(node, op_type) and node.inputs.count(name) == 1 else None


def _operand(node: Node, name: str) -> str:
    """The other one of two operands."""
    return node.inputs[1] if node.inputs[0] == name else node.inputs[0]


def _is_number(name: str, number: float, graph: Graph) -> bool:
    """Whether a value is a constant of this one number, to float32."""
    constant = graph.constant(name)
    if constant is None or prod(constant.dims) != 1 or constant.data_type != DataType.FLOAT:
        return False
    return len(constant.dims) <= 1 and isclose(to_numpy(constant).item(), number, rel_tol=1e-6)


def _is_of(node: Node, op_type: str) -> bool:
    return node.op_type == op_type and not node.domain

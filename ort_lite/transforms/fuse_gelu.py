"""x / 2 * (1 + erf(x / sqrt 2)), as exporters write it in five nodes: one com.microsoft Gelu."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, Node
from ort_lite.options import GraphOptimizationLevel
from ort_lite.transforms.patterns import find_maker, is_near, number, other_input, read_by
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ort_lite.transforms.mutable_graph import MutableGraph
    from ort_lite.transforms.patterns import Found

DOMAIN = "com.microsoft"


def _gelu(graph: MutableGraph, index: int) -> bool:
    """Fuse around an Erf; no other node may read the values between.

    The same operations in another order: within 4 eps of the result, relative.
    """
    erf = graph.node(index)
    scaled = find_maker(graph, erf.inputs[0], "Div", "Mul")
    added = read_by(graph, erf.outputs[0], "Add")
    if scaled is None or added is None or graph.users(erf.inputs[0]) != [index]:
        return False
    x = _find_root_scale(graph, scaled[1])
    one = number(graph, other_input(added[1], erf.outputs[0]))
    if x is None or one != 1 or graph.is_pinned(erf.inputs[0]):
        return False
    if graph.element_type(x) != DataType.FLOAT or not graph.shape(x):
        return False
    product = _product(graph, x, added[1].outputs[0])
    if product is None:
        return False
    *between, (last, final) = product
    gelu = Node("Gelu", (x,), final.outputs, name=final.name, domain=DOMAIN)
    graph.replace(last, gelu)
    for at, _ in sorted([scaled, (index, erf), added, *between], key=_number, reverse=True):
        graph.remove(at)
    return True


def _number(indexed_node: Found) -> int:
    return indexed_node[0]


def _find_root_scale(graph: MutableGraph, node: Node) -> str | None:
    """x of x / sqrt 2 or x * sqrt 0.5."""
    left, right = (*node.inputs, "", "")[:2]
    if node.op_type == "Div":
        return left if is_near(number(graph, right), math.sqrt(2)) else None
    for x, factor in ((left, right), (right, left)):
        if is_near(number(graph, factor), math.sqrt(0.5)):
            return x
    return None


def _product(graph: MutableGraph, x: str, bracket: str) -> list[Found] | None:
    """The nodes that multiply the bracket with x and a half, in any order; the last one last."""
    first = read_by(graph, bracket, "Mul")
    if first is None:
        return None
    factor = other_input(first[1], bracket)
    if factor is None:
        return None
    half = find_maker(graph, factor, "Mul")
    if half is not None and graph.users(factor) == [first[0]] and not graph.is_pinned(factor):
        other = other_input(half[1], x)
        return [half, first] if number(graph, other) == 0.5 else None
    last = read_by(graph, first[1].outputs[0], "Mul")
    if last is None:
        return None
    rest = other_input(last[1], first[1].outputs[0])
    halves = (factor == x and number(graph, rest) == 0.5) or (
        rest == x and number(graph, factor) == 0.5
    )
    return [first, last] if halves else None


GELU = RewriteRule(
    name="GeluFusion",
    operators=frozenset(("Erf",)),
    rewrite=_gelu,
    level=GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
)

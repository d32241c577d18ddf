"""Rewrites rotations of halves, which OpenVINO fuses to an operator that a blob restores wrongly.

x1 * cos - x2 * sin becomes part of OpenVINO's internal operator RoPE. An exported blob does not
contain how wide the tables are (`cos_sin_ndims`, seen with 2026.4.1), so that the restored operator
reads beyond them: other numbers, without an error. Here the product is added with x2 negated, which
is the same number to the bit and stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openvino

    from ort_lite.ep import Graph

ROTATION = "RotaryEmbedding"


def may_rotate(graph: Graph) -> bool:
    """Whether a partition has operators that OpenVINO could fuse so."""
    types = {node.op_type for node in graph.nodes}
    return ROTATION in types or {"Concat", "Mul"} <= types


def adds_products(graph: Graph) -> bool:
    """Whether a graph has a sum or a difference of two products, as in a rotation."""

    def is_product(name: str) -> bool:
        index = graph.producer(name)
        while index is not None and graph.nodes[index].op_type == "Neg":
            index = graph.producer(graph.nodes[index].inputs[0])
        return index is not None and graph.nodes[index].op_type == "Mul"

    return any(
        node.op_type in ("Add", "Sub") and all(map(is_product, node.inputs)) for node in graph.nodes
    )


def keep_rotations(model: openvino.Model) -> None:
    """Rewrite, in place, each difference of two products."""
    for node in model.get_ops():
        kind = node.get_type_name()
        if kind not in ("Subtract", "Add"):
            continue
        values = list(node.input_values())
        for first, second in (values, values[::-1])[: 1 if kind == "Subtract" else 2]:
            product = second if kind == "Subtract" else _without_sign(second)
            if product is not None and _is_product(first) and _is_product(product):
                _replace(node, first, product)
                break


def _is_product(value: openvino.Output) -> bool:
    return bool(value.get_node().get_type_name() == "Multiply")


def _without_sign(value: openvino.Output) -> openvino.Output | None:
    """The value whose negative this is; None if this is not a negative."""
    node = value.get_node()
    if node.get_type_name() == "Negative":
        return node.input_value(0)
    if node.get_type_name() == "Multiply":
        for index in (0, 1):
            factor = node.input_value(index).get_node()
            if factor.get_type_name() == "Constant" and factor.get_vector().tolist() == [-1]:
                return node.input_value(1 - index)
    return None


def _replace(node: openvino.Node, first: openvino.Output, product: openvino.Output) -> None:
    """Put first + (-a) * b in place of first - a * b."""
    from eps.openvino.compile.operators import BROADCAST, make_node  # noqa: PLC0415 - lazy: rare
    from eps.openvino.compile.reductions import put_in_place  # noqa: PLC0415 - lazy: rare

    left, right = product.get_node().input_values()
    negative = make_node("Negative", [left]).output(0)
    other = make_node("Multiply", [negative, right], BROADCAST).output(0)
    put_in_place(node, make_node("Add", [first, other], BROADCAST))

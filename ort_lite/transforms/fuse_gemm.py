"""MatMul of two matrices and the Add of a bias: one Gemm, with the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, Node
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Dim
    from ort_lite.transforms.mutable_graph import MutableGraph

FIRST_BROADCASTING = 7
"""Gemm-7 and Add-7 broadcast by themselves."""
FLOATS = frozenset((DataType.FLOAT, DataType.DOUBLE))
"""Types in which Gemm computes no wider than MatMul and Add do."""


def _matmul_add(graph: MutableGraph, index: int) -> bool:
    """The Add whose one side is a matrix product that no other node reads."""
    add = graph.node(index)
    if graph.opset < FIRST_BROADCASTING or len(set(add.inputs)) < 2:
        return False
    for product, bias in (add.inputs, add.inputs[::-1]):
        made = graph.sole_maker(product)
        if made is None or made[1].op_type != "MatMul" or made[1].domain not in ONNX_DOMAINS:
            continue
        at, matmul = made
        if _is_gemm(graph, matmul, bias):
            gemm = Node(
                "Gemm",
                (*matmul.inputs, bias),
                add.outputs,
                name=matmul.name or add.name,
                domain=add.domain,
                metadata_props=matmul.metadata_props,
            )
            graph.remove_pair(at, index, gemm)
            return True
    return False


def _is_gemm(graph: MutableGraph, matmul: Node, bias: str) -> bool:
    """Whether the product is of two matrices and the bias broadcasts to it, not it to the bias.

    The bias must be a constant: what a model declares of other values need not be so.
    """
    if graph.element_type(bias) not in FLOATS or graph.constant(bias) is None:
        return False
    shapes = [graph.shape(name) for name in matmul.inputs]
    right = shapes[1]
    if right is None or any(shape is None or len(shape) != 2 for shape in shapes):
        return False
    if graph.constant(matmul.inputs[1]) is None:
        return False
    return _is_row(graph.shape(bias) or (), right[1])


def _is_row(dims: tuple[Dim, ...], columns: Dim) -> bool:
    if not dims or len(dims) > 2 or dims[-1] not in (1, columns):
        return False
    return len(dims) == 1 or dims[0] == 1


MATMUL_ADD = RewriteRule(name="MatMulAddFusion", operators=frozenset(("Add",)), rewrite=_matmul_add)

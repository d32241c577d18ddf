"""Integers that leave the width in which OpenVINO's CPU plug-in holds them.

It holds int64 in 32 bits, and saturates sums of 8 and 16 bits where ONNX wraps. An int64 input of
a partition is checked at every run (`partition.py`); here nodes are kept away that could make a
larger number inside: arithmetic on what is not known to be small, casts, constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, Tensor
from eps.openvino.support.bounded import NARROW, fits

if TYPE_CHECKING:
    from eps.openvino.support.node_facts import NodeFacts

SMALL_INTEGERS = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16)
ARITHMETIC = frozenset(
    [
        "Abs",
        "Add",
        "CumSum",
        "Div",
        "Mod",
        "Mul",
        "Neg",
        "Pow",
        "ReduceL1",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
        "Sub",
        "Sum",
    ]
)
PRODUCTS = frozenset(["Einsum", "Gemm", "MatMul"])
"""Sums of products: of 32-bit numbers they may need far more, and nobody counts shapes so."""
SCATTERS = frozenset(["ScatterElements", "ScatterND"])
WRAPPING = frozenset(["Add", "Mul", "Neg", "Sub", "Sum"])
CLAMPING = frozenset(["Slice"])
"""Operators whose int64 constants mean "to the end" when they are large."""


def integer_problem(node: NodeFacts) -> str:
    """Why the node's integers keep it away from OpenVINO; "" where they do not."""
    if node.node.domain:
        return ""
    return _constant_problem(node) or _cast_problem(node) or _arithmetic_problem(node)


def _arithmetic_problem(node: NodeFacts) -> str:
    op, elem_type = node.node.op_type, node.elem_type(0)
    adds = op in SCATTERS and node.text("reduction", "none") != "none"
    if elem_type == DataType.INT64 and op in PRODUCTS:
        return "sums of int64 products may need more than 32 bits"
    if elem_type == DataType.INT64 and (op in ARITHMETIC or adds):
        free = [n for n in node.node.inputs if n and n not in node.bounded]
        return f"int64 '{free[0]}' may need more than 32 bits" if free else ""
    if (op in WRAPPING or adds) and elem_type in SMALL_INTEGERS:
        return "sums of 8 and 16 bits saturate where ONNX wraps"
    return ""


def _cast_problem(node: NodeFacts) -> str:
    if node.node.op_type == "Cast":
        target: int | None = node.number("to", 0)
    elif node.node.op_type == "CastLike":
        target = node.elem_type(1)
    else:
        return ""
    source = node.elem_type(0)
    small = source in NARROW or node.node.inputs[0] in node.bounded
    if target != DataType.INT64 or source == DataType.INT64 or small:
        return ""
    return f"'{node.node.inputs[0]}' as int64 may need more than 32 bits"


def _constant_problem(node: NodeFacts) -> str:
    value = node.node.attributes.get("value")
    if value is not None and isinstance(value.value, Tensor) and not fits(value.value):
        return "its int64 value needs more than 32 bits"
    if node.node.op_type in CLAMPING:
        return ""
    for position, name in enumerate(node.node.inputs):
        constant = node.constant(position)
        if constant is not None and not fits(constant):
            return f"int64 constant '{name}' needs more than 32 bits"
    return ""

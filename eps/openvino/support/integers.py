"""Integers that exceed the width in which OpenVINO's CPU plug-in holds them.

It holds int64 in 32 bits, and saturates sums of 8 and 16 bits where ONNX wraps. An int64 input of
a partition is checked at every run (`partition.py`); here nodes are kept away that could make a
larger number inside: arithmetic on what is not known to be small, casts, constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType, Tensor

if TYPE_CHECKING:
    from collections.abc import Collection

    from ctx_formats.onnx_model import Node
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

INT32 = range(-(1 << 31), 1 << 31)
NARROW = frozenset(
    (
        DataType.BOOL,
        DataType.INT8,
        DataType.UINT8,
        DataType.INT16,
        DataType.UINT16,
        DataType.INT32,
    )
)

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
"""Sums of products, which may need far more than 32 bits for 32-bit operands."""
SCATTERS = frozenset(["ScatterElements", "ScatterND"])
WRAPPING = frozenset(["Add", "Mul", "Neg", "Sub", "Sum"])
WRAPPING_32 = frozenset(["Add", "Mul", "ReduceSum", "Sub"])
"""Operators whose results modulo 2**32 depend on their operands modulo 2**32 alone."""
BOUNDS = frozenset((1, 2))
"""Inputs of Slice that mean "to the end" when they are large: starts and ends."""


def integer_problem(node: NodeFacts) -> str:
    """Why OpenVINO cannot hold the node's integers; "" if it can."""
    if node.node.domain:
        return ""
    return _constant_problem(node) or _cast_problem(node) or _arithmetic_problem(node)


def fits(tensor: Tensor) -> bool:
    """Whether an int64 constant fits 32 bits; true for other types."""
    if tensor.data_type != DataType.INT64 or not isinstance(tensor.data, memoryview):
        return True
    values = np.frombuffer(tensor.data, dtype="<i8")
    return not values.size or (int(values.min()) in INT32 and int(values.max()) in INT32)


def _arithmetic_problem(node: NodeFacts) -> str:
    op, elem_type = node.node.op_type, node.elem_type(0)
    adds = op in SCATTERS and node.text("reduction", "none") != "none"
    if elem_type == DataType.INT64 and op in PRODUCTS:
        return "sums of int64 products may need more than 32 bits"
    if elem_type == DataType.INT64 and (op in ARITHMETIC or adds):
        if op in WRAPPING_32 and _is_cut(node.graph, node.node):
            return ""
        return _size_problem(node)
    if (op in WRAPPING or adds) and elem_type in SMALL_INTEGERS:
        return "OpenVINO saturates 8- and 16-bit sums, where ONNX wraps"
    return ""


def _size_problem(node: NodeFacts) -> str:
    """Why operands or the result of int64 arithmetic may be too large; "" if they are not."""
    for name in (*node.node.inputs, *node.node.outputs):
        magnitude = node.magnitudes.of(name) if name else None
        if name and (magnitude is None or not magnitude.fits()):
            return f"int64 '{name}' may need more than 32 bits"
    return ""


def _is_cut(graph: Graph, node: Node) -> bool:
    """Whether all that becomes of a result is a cast to int32, which drops the upper bits."""
    name = node.outputs[0]
    if any(info.name == name for info in graph.outputs):
        return False
    readers = [graph.nodes[index] for index in graph.consumers(name)]
    return bool(readers) and all(
        _casts_to_int32(reader) or (_is_of(reader, WRAPPING_32) and _is_cut(graph, reader))
        for reader in readers
    )


def _makes_bounds(node: NodeFacts) -> bool:
    """Whether a Concat only says where slices start and end; OpenVINO clamps its constants."""
    if node.node.op_type != "Concat":
        return False
    graph, name = node.graph, node.node.outputs[0]
    if any(info.name == name for info in graph.outputs):
        return False
    readers = [graph.nodes[index] for index in graph.consumers(name)]
    return bool(readers) and all(_reads_bound(reader, name) for reader in readers)


def _reads_bound(node: Node, name: str) -> bool:
    places = {place for place, value in enumerate(node.inputs) if value == name}
    return _is_of(node, ("Slice",)) and places <= BOUNDS


def _is_of(node: Node, op_types: Collection[str]) -> bool:
    return not node.domain and node.op_type in op_types


def _casts_to_int32(node: Node) -> bool:
    to = node.attributes.get("to")
    return _is_of(node, ("Cast",)) and to is not None and to.value == DataType.INT32


def _cast_problem(node: NodeFacts) -> str:
    if node.node.op_type == "Cast":
        target: int | None = node.number("to", 0)
    elif node.node.op_type == "CastLike":
        target = node.elem_type(1)
    else:
        return ""
    source = node.elem_type(0)
    if target != DataType.INT64 or source == DataType.INT64 or source in NARROW:
        return ""
    magnitude = node.magnitudes.of(node.node.inputs[0])
    if magnitude is not None and magnitude.fits():
        return ""
    return f"'{node.node.inputs[0]}' cast to int64 may need more than 32 bits"


def _constant_problem(node: NodeFacts) -> str:
    value = node.node.attributes.get("value")
    if value is not None and isinstance(value.value, Tensor) and not fits(value.value):
        return "its int64 value needs more than 32 bits"
    if node.node.op_type == "Slice" or _makes_bounds(node):
        return ""
    for position, name in enumerate(node.node.inputs):
        constant = node.constant(position)
        if constant is not None and not fits(constant):
            return f"int64 constant '{name}' needs more than 32 bits"
    return ""

"""Integers that exceed the width in which OpenVINO's CPU plug-in holds them.

It holds int64 in 32 bits, and saturates sums of 8 and 16 bits where ONNX wraps. An int64 input of
a partition is checked at every run (`partition.py`); here nodes are kept away that could make a
larger number inside: arithmetic on what is not known to be small, casts, constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType, Tensor, TensorType

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

INT32 = range(-(1 << 31), 1 << 31)
SMALL_MAKERS = frozenset(["ArgMax", "ArgMin", "NonZero", "Shape", "Size", "TopK"])
"""Operators whose int64 results count or number elements of a tensor."""

PASSING = frozenset(
    [
        "Add",
        "Compress",
        "Concat",
        "Div",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Pad",
        "Range",
        "Reshape",
        "ScatterElements",
        "ScatterND",
        "Slice",
        "Split",
        "Squeeze",
        "Sub",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "Where",
    ]
)
"""Operators whose results are as large as their operands. A product of sizes may exceed 32 bits,
but a tensor of such a size cannot exist here."""

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
CLAMPING = frozenset(["Slice"])
"""Operators whose int64 constants mean "to the end" when they are large."""


def integer_problem(node: NodeFacts) -> str:
    """Why OpenVINO cannot hold the node's integers; "" if it can."""
    if node.node.domain:
        return ""
    return _constant_problem(node) or _cast_problem(node) or _arithmetic_problem(node)


def bounded_values(graph: Graph) -> frozenset[str]:
    """Names of int64 values that come from shapes, small constants and narrower integers."""
    bounded = {name for name, tensor in graph.initializers.items() if fits(tensor)}
    for index, node in enumerate(graph.nodes):
        if node.domain == "" and _is_bounded(graph, index, node, bounded):
            bounded.update(name for name in node.outputs if name)
    return frozenset(bounded)


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
        free = [n for n in node.node.inputs if n and n not in node.bounded]
        if op in WRAPPING_32 and _is_cut(node.graph, node.node):
            return ""
        return f"int64 '{free[0]}' may need more than 32 bits" if free else ""
    if (op in WRAPPING or adds) and elem_type in SMALL_INTEGERS:
        return "OpenVINO saturates 8- and 16-bit sums, where ONNX wraps"
    return ""


def _is_cut(graph: Graph, node: Node) -> bool:
    """Whether all that becomes of a result is a cast to int32, which drops the upper bits."""
    name = node.outputs[0]
    if any(info.name == name for info in graph.outputs):
        return False
    readers = [graph.nodes[index] for index in graph.consumers(name)]
    return bool(readers) and all(
        _casts_to_int32(reader) or (reader.op_type in WRAPPING_32 and _is_cut(graph, reader))
        for reader in readers
        if not reader.domain
    )


def _casts_to_int32(node: Node) -> bool:
    to = node.attributes.get("to")
    return node.op_type == "Cast" and to is not None and to.value == DataType.INT32


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
    return f"'{node.node.inputs[0]}' cast to int64 may need more than 32 bits"


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


def _is_bounded(graph: Graph, index: int, node: Node, known: set[str]) -> bool:
    if node.op_type in SMALL_MAKERS:
        return True
    if node.op_type == "Cast":
        source = graph.type_of(node.inputs[0])
        narrow = isinstance(source, TensorType) and source.elem_type in NARROW
        return narrow or node.inputs[0] in known
    if node.op_type not in PASSING or graph.bodies(index):
        return False
    return all(name in known or not _is_int64(graph, name) for name in graph.node_inputs(index))


def _is_int64(graph: Graph, name: str) -> bool:
    value_type = graph.type_of(name)
    return not isinstance(value_type, TensorType) or value_type.elem_type == DataType.INT64

"""Which int64 values surely fit the 32 bits in which OpenVINO's CPU plug-in holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType, TensorType

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node, Tensor
    from ort_lite.model.graph import Graph

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
"""Operators that give numbers of the size of the ones they get. A product of sizes may leave 32
bits; the tensor with such a size cannot exist here."""

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


def bounded_values(graph: Graph) -> frozenset[str]:
    """Names of int64 values that come from shapes, small constants and narrower integers."""
    found = {name for name, tensor in graph.initializers.items() if fits(tensor)}
    for index, node in enumerate(graph.nodes):
        if node.domain == "" and _is_bounded(graph, index, node, found):
            found.update(name for name in node.outputs if name)
    return frozenset(found)


def fits(tensor: Tensor) -> bool:
    """Whether an int64 constant fits 32 bits; true for other types."""
    if tensor.data_type != DataType.INT64 or not isinstance(tensor.data, memoryview):
        return True
    values = np.frombuffer(tensor.data, dtype="<i8")
    return not values.size or (int(values.min()) in INT32 and int(values.max()) in INT32)


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
    found = graph.type_of(name)
    return not isinstance(found, TensorType) or found.elem_type == DataType.INT64

"""Operators whose indices OpenVINO does not check (seen with 2025.4 and 2026.4).

An index out of range returns zeros in Gather, and in GatherND reads memory beyond the tensor,
which may crash the process. GatherElements, the Scatter family and RoiAlign are checked: they
raise, so that a GatherElements can check the indices of a GatherND (compile/checked_indices.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.support.node_facts import read_numbers, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim, Node, Tensor
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

GATHER_ND = "GatherND"
UNCHECKED = "indices are not checked; one may be out of range and read beyond the tensor"
MOST_CHECKED = 1 << 21
"""Elements of an axis up to which the check of indices is exact."""
_SIZES = frozenset(("Shape", "Size"))
_TYPES = {DataType.INT64: "<i8", DataType.INT32: "<i4"}


def check_gather(node: NodeFacts) -> str:
    """Decline constant indices out of range; declining all others would cost every embedding."""
    constant, shape, axis = node.constant(1), node.shape(0), node.number("axis", 0)
    indices = None if constant is None else _read_indices(constant)
    if indices is None or shape is None or not -len(shape) <= axis < len(shape):
        return ""
    size = shape[axis]
    wrong = isinstance(size, int) and not _are_in_range(indices.reshape(-1, 1), (size,))
    return "an index is out of range, for which it returns zeros" if wrong else ""


def check_gather_nd(node: NodeFacts) -> str:
    """Accept constants in range, and whatever compile/checked_indices.py can check."""
    axes, shape = find_picked_axes(node.node, node.graph), node.shape(0)
    if axes is None or shape is None:
        return UNCHECKED
    sizes = shape[axes.start : axes.stop]
    constant = node.constant(1)
    if constant is None:
        known = (size for size in sizes if isinstance(size, int))
        return "" if max(known, default=0) <= MOST_CHECKED else UNCHECKED
    values = _read_indices(constant)
    if values is None or not _are_in_range(values.reshape(-1, len(sizes)), sizes):
        return UNCHECKED
    return ""


def check_unchecked(node: NodeFacts) -> str:
    """Accept, where nothing checks indices, constants and what no input's values reach."""
    if node.is_runtime(1) and not _depends_on_shapes_only(node.graph, node.node.inputs[1]):
        return UNCHECKED
    return ""  # as exporters write attention masks; the model's author vouches for them


def find_picked_axes(node: Node, graph: Graph) -> range | None:
    """Axes of the data that a GatherND has indices of; None if they are not known."""
    data, indices = (shape_of(graph, name) for name in node.inputs)
    skipped = read_numbers(node, "batch_dims")
    first = skipped[0] if skipped else 0
    if data is None or not indices or not isinstance(indices[-1], int) or indices[-1] < 1:
        return None
    return range(first, first + indices[-1]) if first + indices[-1] <= len(data) else None


def _depends_on_shapes_only(graph: Graph, name: str) -> bool:
    """Whether a value is computed from shapes and constants alone."""
    visited = {name}
    waiting = [name]
    while waiting:
        value = waiting.pop()
        if not value or graph.constant(value) is not None:
            continue
        index = graph.producer(value)
        if index is None or graph.bodies(index) or graph.nodes[index].domain != "":
            return False
        if graph.nodes[index].op_type not in _SIZES:
            new = set(graph.nodes[index].inputs) - visited
            visited |= new
            waiting += new
    return True


def _read_indices(constant: Tensor) -> np.ndarray | None:
    if not isinstance(constant.data, memoryview):
        return None
    kind = _TYPES.get(DataType(constant.data_type))
    return None if kind is None else np.frombuffer(constant.data, kind).reshape(constant.dims)


def _are_in_range(tuples: np.ndarray, sizes: Sequence[Dim]) -> bool:
    """Whether every column of [N, k] is in the range of its axis, whose size must be known."""
    return all(
        isinstance(size, int) and bool(((column >= -size) & (column < size)).all())
        for column, size in zip(tuples.T, sizes, strict=True)
    )

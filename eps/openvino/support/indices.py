"""Operators whose indices OpenVINO does not check (seen with 2025.4 and 2026.4).

An index out of range returns zeros in Gather, and in GatherND reads memory beyond the tensor,
which may crash the process. GatherElements, the Scatter family and RoiAlign are
checked: they raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

_SIZES = frozenset(("Shape", "Size"))
_TYPES = {DataType.INT64: "<i8", DataType.INT32: "<i4"}


def check_gather(node: NodeFacts) -> str:
    """Decline constant indices out of range; declining all others would cost every embedding."""
    indices, shape = _constant_indices(node), node.shape(0)
    axis = node.number("axis", 0)
    if indices is None or shape is None or not -len(shape) <= axis < len(shape):
        return ""
    size = shape[axis]
    wrong = isinstance(size, int) and not _are_in_range(indices.reshape(-1, 1), (size,))
    return "an index is out of range, for which it returns zeros" if wrong else ""


def check_gather_nd(node: NodeFacts) -> str:
    """Accept constant indices in range, and indices that no input's values reach."""
    indices, shape, skipped = _constant_indices(node), node.shape(0), node.number("batch_dims", 0)
    if node.is_runtime(1) and _depends_on_shapes_only(node.graph, node.node.inputs[1]):
        return ""  # as exporters write attention masks; the model's author vouches for them
    if indices is None or shape is None or not indices.ndim:
        return "indices are not checked; an input's values may read beyond the tensor"
    tuples = indices.reshape(-1, indices.shape[-1])
    picked = shape[skipped : skipped + tuples.shape[1]]
    if len(picked) == tuples.shape[1] and _are_in_range(tuples, picked):
        return ""
    return "indices are not checked; one may be out of range and read beyond the tensor"


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


def _constant_indices(node: NodeFacts) -> np.ndarray | None:
    constant = node.constant(1)
    if constant is None or not isinstance(constant.data, memoryview):
        return None
    kind = _TYPES.get(DataType(constant.data_type))
    return None if kind is None else np.frombuffer(constant.data, kind).reshape(constant.dims)


def _are_in_range(tuples: np.ndarray, sizes: Sequence[Dim]) -> bool:
    """Whether every column of [N, k] is in the range of its axis, whose size must be known."""
    return all(
        isinstance(size, int) and bool(((column >= -size) & (column < size)).all())
        for column, size in zip(tuples.T, sizes, strict=True)
    )

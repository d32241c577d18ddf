"""Operators that pick by indices which OpenVINO does not check (seen with 2025.4 and 2026.4).

An index out of range gives zeros in Gather, and reads memory that is no part of the tensor in
GatherND, to the point of ending the process. GatherElements, the Scatter family and RoiAlign are
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
    from ort_lite.model.graph import Graph

_SIZES = frozenset(("Shape", "Size"))
_TYPES = {DataType.INT64: "<i8", DataType.INT32: "<i4"}


def gather(node: NodeFacts) -> str:
    """Constant indices are looked at; refusing others would cost every model with embeddings."""
    indices, shape = _indices(node), node.shape(0)
    axis = node.number("axis", 0)
    if indices is None or shape is None or not -len(shape) <= axis < len(shape):
        return ""
    size = shape[axis]
    wrong = isinstance(size, int) and not _inside(indices.reshape(-1, 1), (size,))
    return "an index is out of range, which OpenVINO takes for a row of zeros" if wrong else ""


def gather_nd(node: NodeFacts) -> str:
    """Constant indices that are surely inside, and those that no input's values reach."""
    indices, shape, skipped = _indices(node), node.shape(0), node.number("batch_dims", 0)
    if node.is_runtime(1) and _follows_from_shapes(node.graph, node.node.inputs[1]):
        return ""  # as exporters write attention masks; the model's author vouches for them
    if indices is None or shape is None or not indices.ndim:
        return "OpenVINO does not check indices, which inputs reach: memory beyond the tensor"
    tuples = indices.reshape(-1, indices.shape[-1])
    picked = shape[skipped : skipped + tuples.shape[1]]
    if len(picked) == tuples.shape[1] and _inside(tuples, picked):
        return ""
    return "OpenVINO does not check indices, and one may be out of range: memory beyond the tensor"


def _follows_from_shapes(graph: Graph, name: str) -> bool:
    """Whether a value is computed from shapes and constants alone."""
    seen = {name}
    waiting = [name]
    while waiting:
        value = waiting.pop()
        if not value or graph.constant(value) is not None:
            continue
        index = graph.producer(value)
        if index is None or graph.bodies(index) or graph.nodes[index].domain != "":
            return False
        if graph.nodes[index].op_type not in _SIZES:
            new = set(graph.nodes[index].inputs) - seen
            seen |= new
            waiting += new
    return True


def _indices(node: NodeFacts) -> np.ndarray | None:
    constant = node.constant(1)
    if constant is None or not isinstance(constant.data, memoryview):
        return None
    kind = _TYPES.get(DataType(constant.data_type))
    return None if kind is None else np.frombuffer(constant.data, kind).reshape(constant.dims)


def _inside(tuples: np.ndarray, sizes: Sequence[Dim]) -> bool:
    """Whether every column of [N, k] lies in the axis of its size; unknown sizes hold nothing."""
    return all(
        isinstance(size, int) and bool(((column >= -size) & (column < size)).all())
        for column, size in zip(tuples.T, sizes, strict=True)
    )

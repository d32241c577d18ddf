"""Values without elements: constants where nodes make them, and nothing where nodes join them.

PyTorch writes the shapes of `x[..., i:] = y` as slices behind the last dimension, joined to others.
An execution provider that computes no values without elements would leave such nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType
from ort_lite.model.tensor_values import numpy_dtype
from ort_lite.transforms.attributes import int_of
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ort_lite.transforms.mutable_graph import MutableGraph


def _find_empty_shape(graph: MutableGraph, name: str) -> tuple[int, ...] | None:
    """The shape of a value that has no elements in any run; None for another."""
    shape = graph.shape(name)
    if shape is None or 0 not in shape:
        return None
    certain = graph.certain_shape(name)
    return certain if certain is not None and 0 in certain else None


def _slice(graph: MutableGraph, index: int) -> bool:
    """A constant in place of a Slice whose result has no elements."""
    result = graph.node(index).outputs[0]
    shape = None if graph.is_pinned(result) else _find_empty_shape(graph, result)
    kind = graph.element_type(result)
    if shape is None or kind is None or kind == DataType.STRING:
        return False
    name = graph.add_constant(f"{result}/empty", np.empty(shape, numpy_dtype(kind)))
    return graph.bypass(index, name)


def _concat(graph: MutableGraph, index: int) -> bool:
    """A Concat without the inputs that have no elements along its axis."""
    node = graph.node(index)
    axis = int_of(node, "axis", 1)  # optional before opset 4
    kept = tuple(name for name in node.inputs if not _adds_nothing(graph, name, axis))
    if not kept or len(kept) == len(node.inputs):
        return False
    graph.replace(index, replace(node, inputs=kept))
    return True


def _adds_nothing(graph: MutableGraph, name: str, axis: int) -> bool:
    shape = _find_empty_shape(graph, name)
    return shape is not None and -len(shape) <= axis < len(shape) and shape[axis] == 0


def _rewrite(graph: MutableGraph, index: int) -> bool:
    return (_slice if graph.node(index).op_type == "Slice" else _concat)(graph, index)


EMPTY = RewriteRule(
    name="EmptyElimination", operators=frozenset(("Concat", "Slice")), rewrite=_rewrite
)

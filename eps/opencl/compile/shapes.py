"""Shapes of a partition's inputs: fixed by the model, by `reshape_input`, or free until a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from ort_lite.ep import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Dim, ValueInfo
    from ort_lite.ep import Graph

    Shape = tuple[int, ...]

Shapes = tuple[tuple[int, ...], ...]
"""Of every input, in order."""


def dims_of(info: ValueInfo) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor; None if it is none, or its rank is not known."""
    return info.type.shape if isinstance(info.type, TensorType) else None


def static_shapes(graph: Graph) -> dict[str, Shape] | None:
    """The shape of every input; None if one has a free dimension."""
    return bind_shapes(graph, {}, {})


def bind_shapes(
    graph: Graph, overrides: Mapping[str, Shape], sizes: Mapping[str, int]
) -> dict[str, Shape] | None:
    """The shape of every input where all dimensions have a size, else None.

    Args:
        graph: A partition.
        overrides: Shapes by input name.
        sizes: Sizes by dimension name.
    """
    shapes = {}
    for info in graph.inputs:
        dims = overrides.get(info.name, dims_of(info))
        if dims is None:
            return None
        bound = tuple(sizes.get(d, -1) if isinstance(d, str) else d for d in dims)
        known = tuple(n for n in bound if isinstance(n, int) and n >= 0)
        if len(known) != len(bound):
            return None
        shapes[info.name] = known
    return shapes


def sizes_of(graph: Graph, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """The size of each named dimension of the inputs that `shapes` has shapes for.

    Raises:
        InvalidArgument: A shape is not one that the input can have.
    """
    sizes: dict[str, int] = {}
    for info in graph.inputs:
        shape, dims = shapes.get(info.name), dims_of(info)
        if shape is None or dims is None:
            continue
        if len(shape) != len(dims):
            raise InvalidArgument(
                f"reshape_input has {len(shape)} dimensions for {info.name}, the model {len(dims)}"
            )
        for n, dim in zip(shape, dims, strict=True):
            known = sizes.setdefault(dim, n) if isinstance(dim, str) else dim
            if isinstance(known, int) and 0 <= known != n:
                raise InvalidArgument(
                    f"reshape_input has {info.name}{list(shape)}, "
                    f"where dimension '{dim}' is {known}"
                )
    return sizes

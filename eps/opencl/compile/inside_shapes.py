"""Shapes of values inside a model, where its inputs have the sizes that nodes are tried with.

A value that another EP makes may have free dimensions without a name, since half of a named
dimension has none. Where its shape follows from the shapes of the model's inputs, inference with
sizes in place of names finds it, and the value is one more input whose shape each run decides.
Shapes that depend on data, such as that of NonZero, stay unknown.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.opencl.compile.shapes import dims_of
from ort_lite.ep import InvalidArgument, InvalidGraph, get_logger, infer_static_shapes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Dim
    from eps.opencl.compile.shapes import Shape
    from ort_lite.ep import Graph

log = get_logger(__name__)


class InsideShapes:
    """Shapes of the values of a model; inferred when the first is asked for.

    The graph is not kept alive, because that would keep its weights in memory after the session
    is made; it is alive while partitions are chosen and compiled.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        sizes: Mapping[str, int] | None = None,
        inputs: Mapping[str, Shape] | None = None,
        *,
        samples: bool = True,
    ) -> None:
        """Infer nothing yet.

        Args:
            graph: Of a whole model; None, or the body of a node, for no shapes.
            sizes: By name of a dimension.
            inputs: Shapes by input name.
            samples: Whether other dimensions of inputs have a size on trial; else they stay free.
        """
        self._graph = weakref.ref(graph) if graph is not None and not graph.is_body else None
        self._inputs = inputs or {}
        self.sizes: Mapping[str, int] = dict(sizes or {})
        self._samples = samples
        if graph is not None and samples:
            self.sizes = {**sample_sizes(graph), **self.sizes}
        self._shapes: Mapping[str, Shape] | None = None

    def find(self, name: str) -> Shape | None:
        """The shape of a value; None where it does not follow from those of the inputs."""
        if self._shapes is None:
            graph = self._graph() if self._graph is not None else None
            if graph is None:
                return None
            self._shapes = self._infer(graph)
        return self._shapes.get(name)

    def _infer(self, graph: Graph) -> Mapping[str, Shape]:
        shapes = {
            info.name: self._inputs.get(info.name) or self._sizes_of(dims)
            for info in graph.inputs
            if (dims := dims_of(info)) is not None
        }
        try:
            return infer_static_shapes(graph, shapes)
        except (InvalidArgument, InvalidGraph) as exc:
            log.info("no shapes inside the model for inputs of %s: %s", shapes, exc)
            return {}

    def _sizes_of(self, dims: tuple[Dim, ...]) -> tuple[int | None, ...]:
        """The size of each dimension of an input; None if it stays free."""
        known = [self.sizes.get(dim) if isinstance(dim, str) else dim for dim in dims]
        return tuple(
            n if n is not None and n >= 0 else sample_size(axis) if self._samples else None
            for axis, n in enumerate(known)
        )


def sample_size(axis: int) -> int:
    """A size on trial: a batch of more than one; rows, columns and words that halve often."""
    return 2 if axis == 0 else 64


def sample_sizes(graph: Graph) -> dict[str, int]:
    """A size for each named dimension of the inputs."""
    sizes: dict[str, int] = {}
    for info in graph.inputs:
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        for axis, dim in enumerate(shape or ()):
            if isinstance(dim, str):
                sizes.setdefault(dim, sample_size(axis))
    return sizes

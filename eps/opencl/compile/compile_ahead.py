"""Compiling partitions with free dimensions ahead of time, for what `reshape_input` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.shapes import bind_shapes, sizes_of
from ort_lite.ep import EPFail, get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.compile.shapes import Shapes
    from eps.opencl.options import OpenCLOptions
    from eps.opencl.runtime.dynamic import DynamicPartition
    from eps.opencl.tuning.tune import Progress
    from ort_lite.ep import FusedNode

log = get_logger(__name__)


def shapes_to_compile(
    fused: FusedNode, options: OpenCLOptions, sizes: Sequence[Mapping[str, int]]
) -> list[Shapes]:
    """The shapes of a partition's inputs that it is to be compiled for now.

    Args:
        fused: With free dimensions.
        options: With sets of shapes.
        sizes: For each set the size of each named dimension of the whole model.

    Raises:
        EPFail: Some stay free, and other shapes are to be refused.
    """
    graph, shape_sets = fused.graph, []
    for known, declared in zip(sizes, options.reshape, strict=True):
        shapes = bind_shapes(graph, declared, {**known, **sizes_of(graph, declared)})
        if shapes is not None:
            shape_sets.append(tuple(shapes.values()))
            continue
        names = ", ".join(info.name for info in graph.inputs)
        problem = f"{fused.name}: reshape_input leaves dimensions of {names} free"
        if options.closed:
            raise EPFail(f"{problem}, and other_shapes=refuse lets none be")
        log.warning("%s; it compiles at its first run", problem)
    return shape_sets


def prepare(
    partition: DynamicPartition, shape_sets: Sequence[Shapes], progress: Progress | None
) -> None:
    """Compile for each of the shapes."""
    for count, shapes in enumerate(shape_sets):
        if progress is not None:
            progress(f"sets of shapes of {partition.name}", count, len(shape_sets))
        partition.prepare(shapes)

"""Compiling partitions with free dimensions ahead of time, for what `reshape_input` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.inside_shapes import InsideShapes
from eps.opencl.compile.shapes import bind_shapes, sizes_of
from ort_lite.ep import EPFail, get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.shapes import Shape, Shapes
    from eps.opencl.options import OpenCLOptions
    from eps.opencl.runtime.dynamic import DynamicPartition
    from eps.opencl.tuning.tune import Progress
    from ort_lite.ep import FusedNode, Graph

log = get_logger(__name__)


def shapes_to_compile(
    fused: FusedNode, options: OpenCLOptions, inside: Sequence[InsideShapes]
) -> list[Shapes]:
    """The shapes of a partition's inputs that it is to be compiled for now.

    Args:
        fused: With free dimensions.
        options: With sets of shapes.
        inside: For each set the sizes of named dimensions of the whole model, and the shapes inside
            it that follow; empty where no model is known.

    Raises:
        EPFail: Some stay free, and other shapes are to be refused.
    """
    graph, shape_sets = fused.graph, []
    for index, declared in enumerate(options.reshape):
        of_model = inside[index] if inside else InsideShapes()
        sizes = {**of_model.sizes, **sizes_of(graph, declared)}
        shapes = bind_shapes(graph, declared, sizes)
        if shapes is None:
            shapes = bind_shapes(graph, {**_shapes_inside(graph, of_model), **declared}, sizes)
        if shapes is not None:
            shape_sets.append(tuple(shapes.values()))
            continue
        names = ", ".join(info.name for info in graph.inputs)
        problem = f"{fused.name}: reshape_input leaves dimensions of {names} free"
        if options.refuses_others:
            raise EPFail(f"{problem}, and other_shapes=refuse lets none be")
        log.warning("%s; it compiles at its first run", problem)
    return shape_sets


def _shapes_inside(graph: Graph, inside: InsideShapes) -> dict[str, Shape]:
    shapes = {info.name: inside.find(info.name) for info in graph.inputs}
    return {name: shape for name, shape in shapes.items() if shape is not None}


def prepare(
    partition: DynamicPartition, shape_sets: Sequence[Shapes], progress: Progress | None
) -> None:
    """Compile for each of the shapes."""
    for count, shapes in enumerate(shape_sets):
        if progress is not None:
            progress(f"sets of shapes of {partition.name}", count, len(shape_sets))
        partition.prepare(shapes)

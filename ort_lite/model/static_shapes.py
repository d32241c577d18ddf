"""Infers the shapes of a model's values from static shapes of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Model, TensorType, ValueInfo
from ort_lite.model.free_dimensions import bind
from ort_lite.model.graph import declared_types
from ort_lite.model.shape_inference import infer_types
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Dim, GraphDef
    from ort_lite.model.graph import Graph

IR_VERSION = 10


def infer_static_shapes(
    graph: Graph, shapes: Mapping[str, Sequence[int | None]]
) -> dict[str, tuple[int, ...]]:
    """Static shapes of a graph's values, by name; without values whose shape stays unknown.

    Args:
        graph: A whole model, not the body of a node.
        shapes: Sizes of dimensions, None if one stays free. Of inputs, and of values inside,
            which count where inference finds nothing. Other names are ignored.

    Raises:
        InvalidArgument: A shape has another rank than the input.
        InvalidGraph: The shapes contradict the graph.
    """
    definition = _with_shapes(graph, shapes)
    inferred = infer_types(
        Model(graph=definition, ir_version=IR_VERSION, opset_imports=graph.opset_imports)
    ).graph
    types = declared_types(inferred)
    static = {}
    for name, value_type in types.items():
        shape = value_type.shape if isinstance(value_type, TensorType) else None
        sizes = tuple(dim for dim in shape or () if isinstance(dim, int) and dim >= 0)
        if shape is not None and len(sizes) == len(shape):
            static[name] = sizes
    return static


def _with_shapes(graph: Graph, shapes: Mapping[str, Sequence[int | None]]) -> GraphDef:
    """The graph's definition with sizes in its inputs, also for dimensions of the same name."""
    sizes: dict[str, set[int]] = {}
    inputs: list[ValueInfo] = []
    for info in graph.definition.inputs:
        shape = shapes.get(info.name)
        if shape is None or not isinstance(info.type, TensorType):
            inputs.append(info)
            continue
        dims: Sequence[Dim] = (
            info.type.shape if info.type.shape is not None else [None] * len(shape)
        )
        if len(dims) != len(shape):
            raise InvalidArgument(
                f"{info.name} gets {len(shape)} dimensions, the model has {len(dims)}"
            )
        for dim, size in zip(dims, shape, strict=True):
            if isinstance(dim, str) and size is not None:
                sizes.setdefault(dim, set()).add(size)
        fixed = (dim if n is None else n for dim, n in zip(dims, shape, strict=True))
        inputs.append(replace(info, type=TensorType(info.type.elem_type, tuple(fixed))))
    # A name with two sizes, such as "?", names no dimension.
    named = {name: next(iter(options)) for name, options in sizes.items() if len(options) == 1}
    bound = bind(replace(graph.definition, inputs=tuple(inputs)), named)
    return replace(bound, value_info=_declared_inside(graph, shapes))


def _declared_inside(
    graph: Graph, shapes: Mapping[str, Sequence[int | None]]
) -> dict[str, ValueInfo]:
    """Sizes that the user sets for values that nodes make."""
    made = {name for node in graph.nodes for name in node.outputs}
    types = {name: graph.type_of(name) for name in shapes if name in made}
    return {
        name: ValueInfo(name, TensorType(value_type.elem_type, tuple(shapes[name])))
        for name, value_type in types.items()
        if isinstance(value_type, TensorType)
    }

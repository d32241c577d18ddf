"""Shapes of a whole model, for a device that needs static shapes in each of its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import ValueInfo
    from ort_lite.ep import Graph


@dataclass(frozen=True, slots=True)
class KnownShapes:
    """Shapes of a whole model.

    Attributes:
        values: Shapes of values inside where the model's inputs have those of `reshape_input`.
        inputs_are_static: Whether every input of the model has a static shape, so that only a
            run knows the shape of a value that has none.
    """

    values: Mapping[str, Sequence[int]] = field(default_factory=dict)
    inputs_are_static: bool = False


def learn_shapes(graph: Graph, reshape: Mapping[str, Sequence[tuple[int, int]]]) -> KnownShapes:
    """The shapes of a model.

    Args:
        graph: Of the whole model, not of the body of a node.
        reshape: `reshape_input`: bounds of each dimension, by name of the value.

    Raises:
        InvalidArgument: A shape has another rank than the input.
        InvalidGraph: The shapes contradict the graph.
    """
    sizes = {
        name: [low if low == high else None for low, high in bounds]
        for name, bounds in reshape.items()
    }
    static = all(
        info.name in graph.definition.initializers or _is_static(info, sizes.get(info.name))
        for info in graph.definition.inputs
    )
    if not sizes:
        return KnownShapes(inputs_are_static=static)
    from ort_lite.ep import infer_static_shapes  # noqa: PLC0415 - lazy: rare

    return KnownShapes(infer_static_shapes(graph, sizes), inputs_are_static=static)


def _is_static(info: ValueInfo, sizes: Sequence[int | None] | None) -> bool:
    shape = info.type.shape if isinstance(info.type, TensorType) else None
    dims = sizes if sizes is not None else shape
    return dims is not None and all(isinstance(dim, int) and dim >= 0 for dim in dims)

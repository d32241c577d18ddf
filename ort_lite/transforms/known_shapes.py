"""Shapes that values inside a graph are sure to have, whatever the file says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.onnx_model import TensorType, ValueInfo
from ort_lite.model.bodies import bodies
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS, fixed_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_formats.onnx_model import GraphDef, Model
    from ort_lite.model.shape_inference import Inferred

    InferTypes = Callable[[Model], Inferred]


@dataclass(slots=True)
class CertainShapes:
    """Shapes that follow from those of a model's inputs, which every feed is checked against.

    What a file declares of other values does not count, nor does what follows from operators
    that onnx does not know, or whose bodies declare types of their own.

    Attributes:
        model: With its nodes sorted and its types inferred.
        infer: onnx's inference, called when a shape is first needed and `certain` is None.
        certain: See `Inferred`.
    """

    model: Model
    infer: InferTypes
    certain: GraphDef | None = None
    _dims: Mapping[str, tuple[int | None, ...]] | None = field(default=None)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a value of the main graph; None if it is not fixed or not certain."""
        return fixed_shape(self.dims(name))

    def dims(self, name: str) -> tuple[int | None, ...] | None:
        """The sizes of a value of the main graph, None for those that vary or are not certain.

        None if its rank is not certain.
        """
        if self._dims is None:
            self._dims = _certain_dims(self.certain or self._infer_again())
        return self._dims.get(name)

    def _infer_again(self) -> GraphDef:
        bare = replace(self.model, graph=_drop_declarations(self.model.graph))
        return self.infer(bare).model.graph


def _drop_declarations(graph: GraphDef) -> GraphDef:
    """`graph` without what it says of values that are neither inputs nor constants."""
    outputs = tuple(ValueInfo(info.name) for info in graph.outputs)
    return replace(graph, value_info={}, outputs=outputs)


def sure_values(graph: GraphDef, is_sure_outside: Callable[[str], bool] | None = None) -> set[str]:
    """Values whose types follow from those of inputs by operators that onnx knows.

    Of nodes with bodies only Ifs count: the bodies of others declare types of their inputs.

    Args:
        graph: With the types that follow alone; see `Inferred.certain`.
        is_sure_outside: Of a body, whether a value of the graphs around it is one of these.
    """
    sure = {info.name for info in graph.inputs} | graph.initializers.keys()
    made = {name for node in graph.nodes for name in node.outputs}

    def is_sure(name: str) -> bool:
        if name in sure or name in made or is_sure_outside is None:
            return name in sure
        return is_sure_outside(name)

    def gives_sure_values(body: GraphDef) -> bool:
        inside = sure_values(body, is_sure)
        own = {name for node in body.nodes for name in node.outputs}
        names = [info.name for info in body.outputs]
        return all(name in inside or (name not in own and is_sure(name)) for name in names)

    for node in graph.nodes:
        inner = [body for _, body in bodies(node)]
        if node.domain not in ONNX_DOMAINS or (inner and node.op_type != "If"):
            continue
        if all(map(is_sure, filter(None, node.inputs))) and all(map(gives_sure_values, inner)):
            sure.update(node.outputs)
    return sure


def _certain_dims(graph: GraphDef) -> dict[str, tuple[int | None, ...]]:
    sure = sure_values(graph)
    by_name: dict[str, tuple[int | None, ...]] = {}
    # An output may have two types: the one that a session shows, and what inference finds.
    for info in (*graph.value_info.values(), *graph.inputs, *graph.outputs):
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        if shape is None or info.name not in sure:
            continue
        dims = tuple(dim if isinstance(dim, int) and dim >= 0 else None for dim in shape)
        known = by_name.setdefault(info.name, dims)
        if len(known) == len(dims):
            by_name[info.name] = tuple(map(_known_one, known, dims))
    return by_name


def _known_one(one: int | None, other: int | None) -> int | None:
    return other if one is None else one

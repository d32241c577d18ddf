"""Types that a file declares, weighed against those that inference finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import TensorType, ValueInfo
from ort_lite.model.bodies import map_graph_bodies

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctx_formats.onnx_model import Dim, GraphDef, ValueType

    Shape = tuple[Dim, ...]

GENERATED = "unk__"
"""Beginning of the symbols that onnx's inference makes for sizes that it does not know."""


def remove_declarations(graph: GraphDef) -> GraphDef:
    """`graph` and its bodies without types of values that are neither inputs nor constants.

    An output that no node makes, such as a state that a Loop only hands on, keeps its element
    type: onnx's inference finds types of nodes' outputs alone.
    """
    known = {info.name: info.type for info in graph.inputs}
    known.update({n: TensorType(t.data_type, t.dims) for n, t in graph.initializers.items()})
    outputs = tuple(
        ValueInfo(info.name, _without_shape(info.type or known[info.name]))
        if info.name in known
        else ValueInfo(info.name)
        for info in graph.outputs
    )
    return map_graph_bodies(replace(graph, value_info={}, outputs=outputs), remove_declarations)


def _without_shape(kind: ValueType | None) -> ValueType | None:
    return TensorType(kind.elem_type) if isinstance(kind, TensorType) else kind


def symbols_of(infos: Iterable[ValueInfo]) -> frozenset[str]:
    """The symbols in shapes of tensors."""
    return frozenset(
        dim
        for info in infos
        if isinstance(info.type, TensorType) and info.type.shape is not None
        for dim in info.type.shape
        if isinstance(dim, str)
    )


def contradict(mine: ValueType | None, theirs: ValueType | None) -> bool:
    """Whether two shapes differ in rank or in a size that both give."""
    if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType):
        return False
    a, b = mine.shape, theirs.shape
    if a is None or b is None:
        return False
    return len(a) != len(b) or any(map(_differ, a, b))


def says_more(mine: ValueType | None, theirs: ValueType | None) -> bool:
    """Whether `mine` has every size that `theirs` has, and further sizes or names of sizes."""
    if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType):
        return theirs is None
    a, b = mine.shape, theirs.shape
    if a is None or b is None:
        return a is not None
    pairs = [(_knowledge(x), _knowledge(y)) for x, y in zip(a, b, strict=False)]
    return len(a) == len(b) and all(x >= y for x, y in pairs) and any(x > y for x, y in pairs)


def _knowledge(dim: Dim) -> int:
    """2 for a size, 1 for a name of the model's own, 0 for what is not known."""
    if isinstance(dim, str):
        return 0 if dim.startswith(GENERATED) else 1
    return 2 if dim is not None and dim >= 0 else 0


def same_sizes(mine: ValueType | None, theirs: ValueType | None) -> bool:
    """Whether two types say the same of rank and sizes; symbols do not count."""
    if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType):
        return mine == theirs
    a, b = mine.shape, theirs.shape
    if a is None or b is None or len(a) != len(b):
        return a == b
    return all(x == y if _is_size(x) or _is_size(y) else True for x, y in zip(a, b, strict=True))


def _differ(a: Dim, b: Dim) -> bool:
    return _is_size(a) and _is_size(b) and a != b


def _is_size(dim: Dim) -> bool:
    """A negative size is some exporters' way to say "unknown"."""
    return isinstance(dim, int) and dim >= 0


def merge_types(
    inferred: ValueType | None, declared: ValueType | None, certain: frozenset[str]
) -> ValueType | None:
    """Inferred types, and the file's declarations where inference finds none.

    Args:
        inferred: By inference; None if it found nothing.
        declared: By the file.
        certain: Symbols of the model's inputs; a size declared for one of them is not believed,
            for a feed decides.
    """
    if inferred is None:
        return declared
    if not isinstance(inferred, TensorType) or not isinstance(declared, TensorType):
        return inferred
    if declared.elem_type != inferred.elem_type or declared.shape is None:
        return inferred
    if inferred.shape is None:
        return declared
    if len(inferred.shape) != len(declared.shape):
        return inferred
    shape = tuple(
        mine if isinstance(mine, int) or mine in certain or not _is_size(theirs) else theirs
        for mine, theirs in zip(inferred.shape, declared.shape, strict=True)
    )
    return inferred if shape == inferred.shape else TensorType(inferred.elem_type, shape)


def shown_type(
    declared: ValueType | None, inferred: ValueType | None, certain: frozenset[str]
) -> ValueType | None:
    """The type of a graph output as onnxruntime shows it.

    Declared sizes stay, those that are missing come from inference. Where the two contradict
    each other, only what is the same in both stays; of another rank nothing does (ONNX's
    mergeInShapeInfo and UnionShapeInfo).

    Args:
        declared: By the file.
        inferred: By inference.
        certain: As in `merge_types`; symbols that inference made are not shown.
    """
    if declared is None or inferred is None:
        return declared or inferred
    if not isinstance(declared, TensorType) or not isinstance(inferred, TensorType):
        return declared
    theirs = _drop_generated(inferred.shape, certain)
    if theirs is None:
        return declared
    if declared.shape is None:
        return TensorType(declared.elem_type, theirs)
    if contradict(declared, inferred):
        return TensorType(declared.elem_type, _common_shape(declared.shape, theirs))
    return TensorType(declared.elem_type, tuple(map(_merge, declared.shape, theirs)))


def _drop_generated(shape: Shape | None, certain: frozenset[str]) -> Shape | None:
    if shape is None:
        return None
    return tuple(
        None if isinstance(dim, str) and dim.startswith(GENERATED) and dim not in certain else dim
        for dim in shape
    )


def _common_shape(mine: Shape, theirs: Shape) -> Shape | None:
    if len(mine) != len(theirs):
        return None
    return tuple(a if a == b else None for a, b in zip(mine, theirs, strict=True))


def _merge(mine: Dim, theirs: Dim) -> Dim:
    if _is_size(mine):
        return mine
    if _is_size(theirs) or not isinstance(mine, str):
        return theirs
    return mine


def shape_text(value_type: ValueType | None) -> str:
    """A shape as onnxruntime writes it: {2,3}."""
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    dims: Sequence[Dim] = shape or ()
    return "{" + ",".join("" if dim is None else str(dim) for dim in dims) + "}"

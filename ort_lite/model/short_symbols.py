"""Shorter names for dimensions that a model gives very long ones.

Inference repeats the name of an input's dimension in the shape of every value that has it. The
inputs and outputs of a session keep the names that the file gives them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import SparseTensorType, TensorType
from ort_lite.model.bodies import map_graph_bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctx_formats.onnx_model import Dim, GraphDef, ValueInfo

LONGEST = 64
"""Characters; a name by an exporter is mostly shorter, a formula may be longer."""
_KEPT = 32


def with_short_symbols(graph: GraphDef) -> GraphDef:
    """`graph` and its bodies with at most `LONGEST` characters in the name of a dimension.

    One name always becomes the same other one. Returns `graph` itself where all are short.
    """
    return map_graph_bodies(_rename_symbols(graph, _shorter), with_short_symbols)


def with_original_symbols(graph: GraphDef, original: GraphDef) -> GraphDef:
    """`graph` with inputs and outputs whose dimensions have the names of `original`'s."""
    infos = (*original.inputs, *original.outputs)
    names = {_shorter(dim): dim for info in infos for dim in _long_symbols((info,))}
    if not names:
        return graph

    def restore_symbol(dim: str) -> str:
        return names.get(dim, dim)

    return replace(
        graph,
        inputs=tuple(_rename_info(info, restore_symbol) for info in graph.inputs),
        outputs=tuple(_rename_info(info, restore_symbol) for info in graph.outputs),
    )


def _shorter(dim: str) -> str:
    if len(dim) <= LONGEST:
        return dim
    return f"{dim[:_KEPT]}~{blake3(dim.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _rename_symbols(graph: GraphDef, change: Callable[[str], str]) -> GraphDef:
    infos = (*graph.inputs, *graph.outputs, *graph.value_info.values())
    if not any(True for _ in _long_symbols(infos)):
        return graph
    return replace(
        graph,
        inputs=tuple(_rename_info(info, change) for info in graph.inputs),
        outputs=tuple(_rename_info(info, change) for info in graph.outputs),
        value_info={n: _rename_info(info, change) for n, info in graph.value_info.items()},
    )


def _long_symbols(infos: Iterable[ValueInfo]) -> Iterable[str]:
    return (
        dim
        for info in infos
        if isinstance(info.type, (TensorType, SparseTensorType)) and info.type.shape is not None
        for dim in info.type.shape
        if isinstance(dim, str) and len(dim) > LONGEST
    )


def _rename_info(info: ValueInfo, change: Callable[[str], str]) -> ValueInfo:
    kind = info.type
    if not isinstance(kind, (TensorType, SparseTensorType)) or kind.shape is None:
        return info
    shape: tuple[Dim, ...] = tuple(change(d) if isinstance(d, str) else d for d in kind.shape)
    if shape == kind.shape:
        return info
    return replace(info, type=type(kind)(kind.elem_type, shape))

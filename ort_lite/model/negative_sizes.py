"""Dimensions of a negative size: some exporters' way to say that it is unknown.

onnx's inference computes with them: a convolution of -1 rows gives 0 or 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import SparseTensorType, TensorType
from ort_lite.model.bodies import map_graph_bodies

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, ValueInfo


def without_negative_sizes(graph: GraphDef) -> GraphDef:
    """`graph` and its bodies with free dimensions for those; itself where there are none."""
    return map_graph_bodies(_free_sizes(graph), without_negative_sizes)


def _free_sizes(graph: GraphDef) -> GraphDef:
    if not any(map(_has_negative, (*graph.inputs, *graph.outputs, *graph.value_info.values()))):
        return graph
    return replace(
        graph,
        inputs=tuple(map(_free_info, graph.inputs)),
        outputs=tuple(map(_free_info, graph.outputs)),
        value_info={name: _free_info(info) for name, info in graph.value_info.items()},
    )


def _has_negative(info: ValueInfo) -> bool:
    kind = info.type
    if not isinstance(kind, (TensorType, SparseTensorType)) or kind.shape is None:
        return False
    return any(isinstance(dim, int) and dim < 0 for dim in kind.shape)


def _free_info(info: ValueInfo) -> ValueInfo:
    kind = info.type
    if not _has_negative(info) or not isinstance(kind, (TensorType, SparseTensorType)):
        return info
    shape = (None if isinstance(dim, int) and dim < 0 else dim for dim in kind.shape or ())
    return replace(info, type=type(kind)(kind.elem_type, tuple(shape)))

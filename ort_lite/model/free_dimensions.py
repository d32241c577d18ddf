"""Symbolic dimensions of the inputs fixed to numbers before anything else looks at them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, ValueInfo


def bind(graph: GraphDef, sizes: Mapping[str, int]) -> GraphDef:
    """`graph` with the named dimensions of its inputs and outputs replaced by sizes.

    What inference found with symbols is dropped, so that it is found again with numbers.
    """
    if not sizes:
        return graph
    return replace(
        graph,
        inputs=tuple(_bound(info, sizes) for info in graph.inputs),
        outputs=tuple(_bound(info, sizes) for info in graph.outputs),
        value_info={},
    )


def _bound(info: ValueInfo, sizes: Mapping[str, int]) -> ValueInfo:
    if not isinstance(info.type, TensorType) or info.type.shape is None:
        return info
    shape = tuple(sizes.get(d, d) if isinstance(d, str) else d for d in info.type.shape)
    return replace(info, type=TensorType(info.type.elem_type, shape))

"""Symbolic dimensions of the inputs fixed to numbers before anything else looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import TensorType
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Dim, GraphDef, ValueInfo


def bind(graph: GraphDef, sizes: Mapping[str, int]) -> GraphDef:
    """`graph` with the named dimensions of its inputs and outputs replaced by sizes.

    What inference found with symbols is dropped, so that it is found again with numbers.
    """
    if not sizes:
        return graph
    return replace(
        graph,
        inputs=tuple(_bind_info(info, sizes) for info in graph.inputs),
        outputs=tuple(_bind_info(info, sizes) for info in graph.outputs),
        value_info={},
    )


def bind_denoted(
    graph: GraphDef,
    denotations: Mapping[str, tuple[str, ...]],
    by_denotation: Mapping[str, int],
    by_name: Mapping[str, int],
) -> GraphDef:
    """`graph` with those dimensions of its inputs fixed that mean what has a size.

    As ONNX Runtime does it (core/optimizer/free_dim_override_transformer.cc).

    Args:
        graph: Of a plain model.
        denotations: Of each dimension of the inputs, by name of the input; "" for none.
        by_denotation: Sizes by denotation in lower case.
        by_name: Sizes by name of the dimension, which must not contradict.

    Raises:
        InvalidArgument: A dimension has another size, or another one by its name.
    """
    inputs = []
    for info in graph.inputs:
        means = denotations.get(info.name, ())
        if isinstance(info.type, TensorType) and info.type.shape is not None:
            shape = tuple(
                _bind(dim, by_denotation.get(meaning.lower()), by_name)
                for dim, meaning in zip(info.type.shape, means, strict=False)
            )
            if shape != info.type.shape:
                info = replace(info, type=TensorType(info.type.elem_type, shape))
        inputs.append(info)
    return replace(graph, inputs=tuple(inputs), value_info={})


def _bind(dim: Dim, size: int | None, by_name: Mapping[str, int]) -> Dim:
    if size is None:
        return dim
    if isinstance(dim, str) and by_name.get(dim, size) != size:
        raise InvalidArgument("Conflicting free dimension overrides.")
    if isinstance(dim, int) and dim != size:
        raise InvalidArgument("Invalid free dimension override.")
    return size


def _bind_info(info: ValueInfo, sizes: Mapping[str, int]) -> ValueInfo:
    if not isinstance(info.type, TensorType) or info.type.shape is None:
        return info
    shape = tuple(sizes.get(d, d) if isinstance(d, str) else d for d in info.type.shape)
    return replace(info, type=TensorType(info.type.elem_type, shape))


def find_fixed_sizes(plain: Sequence[ValueInfo], compiled: Sequence[ValueInfo]) -> dict[str, int]:
    """Sizes by name of the symbolic dimensions that a compile has fixed.

    Args:
        plain: Inputs of the model.
        compiled: Inputs of the compiled model, in any order.
    """
    fixed = {info.name: _dimensions(info) for info in compiled}
    return {
        free: size
        for info in plain
        for free, size in zip(_dimensions(info), fixed.get(info.name, ()), strict=False)
        if isinstance(free, str) and free and isinstance(size, int)
    }


def _dimensions(info: ValueInfo) -> Sequence[int | str | None]:
    return getattr(info.type, "shape", None) or ()

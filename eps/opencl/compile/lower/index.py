"""Operators that find, pick or place elements by index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.ir import (
    ArgExtreme,
    Cumulative,
    GatherElements,
    IrTensor,
    ScatterElements,
    ScatterND,
    Stretch,
    TopIndices,
    Unsupported,
)
from eps.opencl.compile.lower.node import (
    NodeView,
    call,
    constant,
    normal_axis,
    number,
    require_type,
)
from ort_lite.ep import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.expression import Expr

    Result = IrTensor | Sequence[IrTensor]

_REDUCTIONS = ("none", "add", "mul", "max", "min")
MAX_SIFTED = 1 << 26
"""Comparisons that TopK by sifting may need in the worst case."""


def _numbers(node: NodeView, x: IrTensor) -> None:
    if x.dtype == "bool" or x.dtype not in C_TYPES:
        raise Unsupported(f"{node.node.op_type} of {x.dtype}")


def _indices(x: IrTensor) -> None:
    if x.dtype not in ("int32", "int64"):
        raise Unsupported(f"indices of type {x.dtype}")


def _arg(*, largest: bool) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        x = node.input(0)
        _numbers(node, x)
        axis = normal_axis(node.attr("axis", 0), len(x.shape))
        last = bool(node.attr("select_last_index", 0))
        indices = _extreme(node, x, axis, largest=largest, last=last)
        if node.attr("keepdims", 1):
            return indices
        return node.reshape(indices, [n for a, n in enumerate(x.shape) if a != axis])

    return lower


def _extreme(node: NodeView, x: IrTensor, axis: int, *, largest: bool, last: bool) -> IrTensor:
    if not x.size or not x.shape:
        raise Unsupported(f"{node.node.op_type} of shape {list(x.shape)}")
    shape = tuple(1 if a == axis else n for a, n in enumerate(x.shape))
    output = IrTensor(shape, "int64")
    node.emit(ArgExtreme((x,), output, axis, largest, last))
    return output


def _hardmax(node: NodeView) -> IrTensor:
    x = node.input(0)
    node.require_float32(0)
    axis = normal_axis(node.attr("axis", -1 if node.opset >= 13 else 1), len(x.shape))
    if node.opset < 13 and axis != len(x.shape) - 1:
        raise Unsupported("Hardmax over several axes, as before opset 13")
    indices = _extreme(node, x, axis, largest=True, last=False)
    places = _axis_vector(np.arange(x.shape[axis]), axis, len(x.shape))
    return node.pointwise(
        lambda a, i: call("cast", call("eq", a, i, dtype="bool"), dtype="float32"),
        [indices, places],
        "float32",
    )


def _axis_vector(values: np.ndarray, axis: int, rank: int) -> IrTensor:
    """A constant vector along one axis."""
    return constant(values.reshape([-1 if a == axis else 1 for a in range(rank)]))


def _top_k(node: NodeView) -> list[IrTensor]:
    x = node.input(0)
    _numbers(node, x)
    axis = normal_axis(node.attr("axis", -1), len(x.shape))
    count = node.integers(1, "k")[0] if node.opset >= 10 else int(node.attr("k"))
    if not 0 < count <= x.shape[axis]:
        raise Unsupported(f"the best {count} of {x.shape[axis]}")
    if x.size * count > MAX_SIFTED:
        raise Unsupported(f"the best {count} of {x.shape[axis]}: too many to sift")
    shape = tuple(count if a == axis else n for a, n in enumerate(x.shape))
    indices, values = IrTensor(shape, "int64"), IrTensor(shape, x.dtype)
    node.emit(TopIndices((x,), indices, axis, bool(node.attr("largest", 1))))
    node.emit(GatherElements((x, indices), values, axis))
    return [values, indices]


def _cumulative(kind: str) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        x = node.input(0)
        _numbers(node, x)
        if not x.shape:
            raise Unsupported("a running sum of a scalar")
        axis = normal_axis(node.integers(1, "the axis")[0], len(x.shape))
        output = IrTensor(x.shape, x.dtype)
        exclusive, reverse = bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0))
        node.emit(Cumulative((x,), output, axis, kind, exclusive, reverse))
        return output

    return lower


def _gather_elements(node: NodeView) -> IrTensor:
    data, indices = node.input(0), node.input(1)
    require_type(data.dtype)
    _indices(indices)
    axis = normal_axis(node.attr("axis", 0), len(data.shape))
    _require_inside(data, indices, axis)
    output = IrTensor(indices.shape, data.dtype)
    node.emit(GatherElements((data, indices), output, axis))
    return output


def _require_inside(data: IrTensor, indices: IrTensor, axis: int) -> None:
    """Every position of the indices is one of the data, but along the axis."""
    same = len(data.shape) == len(indices.shape) and data.shape
    if not same or any(
        i > n for a, (i, n) in enumerate(zip(indices.shape, data.shape, strict=True)) if a != axis
    ):
        raise Unsupported(f"indices of shape {list(indices.shape)} into {list(data.shape)}")


def _reduction(node: NodeView, data: IrTensor) -> str:
    kind = node.attr("reduction", "none")
    if kind not in _REDUCTIONS:
        raise Unsupported(f"reduction {kind}")
    if kind != "none" and data.dtype == "bool":
        raise Unsupported(f"reduction {kind} of bool")
    require_type(data.dtype)
    return "" if kind == "none" else str(kind)


def _scatter_elements(node: NodeView) -> IrTensor:
    data, indices, updates = node.input(0), node.input(1), node.input(2)
    _indices(indices)
    axis = normal_axis(node.attr("axis", 0), len(data.shape))
    _require_inside(data, indices, axis)
    if indices.shape != updates.shape:
        raise Unsupported(f"updates {list(updates.shape)} for indices {list(indices.shape)}")
    output = IrTensor(data.shape, data.dtype)
    node.emit(ScatterElements((data, indices, updates), output, axis, _reduction(node, data)))
    return output


def _scatter_nd(node: NodeView) -> IrTensor:
    data, indices, updates = node.input(0), node.input(1), node.input(2)
    _indices(indices)
    depth = indices.shape[-1] if indices.shape else 0
    expected = (*indices.shape[:-1], *data.shape[depth:])
    if not 0 < depth <= len(data.shape) or updates.shape != expected:
        raise Unsupported(f"updates {list(updates.shape)} for indices {list(indices.shape)}")
    output = IrTensor(data.shape, data.dtype)
    node.emit(ScatterND((data, indices, updates), output, _reduction(node, data)))
    return output


def _one_hot(node: NodeView) -> IrTensor:
    indices = node.input(0)
    depth = node.integers(1, "the depth")[0]
    off, on = node.constant(2, "the two values")
    require_type(off.dtype.name)
    if depth < 1:
        raise Unsupported(f"a depth of {depth}")
    if indices.dtype not in ("int32", "int64"):
        indices = node.pointwise(lambda a: call("cast", a, dtype="int64"), [indices], "int64")
    rank = len(indices.shape) + 1
    axis = normal_axis(node.attr("axis", -1), rank)
    apart = node.reshape(indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    places = _axis_vector(np.arange(depth, dtype=apart.dtype), axis, rank)
    values = constant(np.array(on)), constant(np.array(off))
    return node.pointwise(
        lambda a, p, yes, no: call("where", _is_at(a, p, depth), yes, no, dtype=yes.dtype),
        [apart, places, *values],
        off.dtype.name,
    )


def _is_at(index: Expr, place: Expr, depth: int) -> Expr:
    negative = call("lt", index, number(0, index), dtype="bool")
    behind = call("add", index, number(depth, index))
    wrapped = call("where", negative, behind, index, dtype=index.dtype)
    return call("eq", wrapped, place, dtype="bool")


def _trilu(node: NodeView) -> IrTensor:
    x = node.input(0)
    if len(x.shape) < 2:
        raise Unsupported(f"a triangle of shape {list(x.shape)}")
    k = node.integers(1, "the diagonal")[0] if node.has(1) else 0
    ones = np.ones(x.shape[-2:], np.bool_)
    mask = constant(np.triu(ones, k) if node.attr("upper", 1) else np.tril(ones, k))
    return node.pointwise(
        lambda a, m: call("where", m, a, number(0, a), dtype=a.dtype), [x, mask], x.dtype
    )


def _eye_like(node: NodeView) -> IrTensor:
    x = node.input(0)
    dtype = x.dtype
    if node.attr("dtype") is not None:
        dtype = numpy_dtype(int(node.attr("dtype"))).name
    require_type(dtype)
    if len(x.shape) != 2:
        raise Unsupported(f"EyeLike of shape {list(x.shape)}")
    return constant(np.eye(x.shape[0], x.shape[1], k=node.attr("k", 0)).astype(dtype))


def _reverse_sequence(node: NodeView) -> IrTensor:
    """Element t of a sequence is element length - 1 - t of it, as long as t < length."""
    x, lengths = node.input(0), node.input(1)
    require_type(x.dtype)
    _indices(lengths)
    time, batch = node.attr("time_axis", 0), node.attr("batch_axis", 1)
    rank = len(x.shape)
    places = _axis_vector(np.arange(x.shape[time], dtype=lengths.dtype), time, rank)
    each = node.reshape(lengths, [lengths.size if a == batch else 1 for a in range(rank)])
    picked = node.pointwise(_mirror, [places, each], lengths.dtype)
    if picked.shape != x.shape:
        picked = node.alias(picked, Stretch(x.shape), x.shape)
    output = IrTensor(x.shape, x.dtype)
    node.emit(GatherElements((x, picked), output, time))
    return output


def _mirror(place: Expr, length: Expr) -> Expr:
    other = call("sub", call("sub", length, number(1, length)), place)
    inside = call("lt", place, length, dtype="bool")
    return call("where", inside, other, place, dtype=place.dtype)


LOWERINGS: Mapping[str, Callable[[NodeView], Result]] = {
    "ArgMax": _arg(largest=True),
    "ArgMin": _arg(largest=False),
    "Hardmax": _hardmax,
    "TopK": _top_k,
    "CumSum": _cumulative("sum"),
    "CumProd": _cumulative("prod"),
    "GatherElements": _gather_elements,
    "ScatterElements": _scatter_elements,
    "Scatter": _scatter_elements,
    "ScatterND": _scatter_nd,
    "OneHot": _one_hot,
    "Trilu": _trilu,
    "EyeLike": _eye_like,
    "ReverseSequence": _reverse_sequence,
}

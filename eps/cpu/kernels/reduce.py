"""Kernels of reductions over axes: sums, means, norms, extrema."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import axis_in, computing_wide, is_floating
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFactory, KernelFn, KernelInfo

    # Reduced axes stay, as 1.
    Reduce = Callable[[Array, tuple[int, ...]], Array]


def _count(x: Array, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[a] for a in axes)


FEW = 8
"""numpy adds up to this many elements of a row one after the other, as a sum of slices does."""


def reduce_sum(x: Array, axes: tuple[int, ...]) -> Array:
    """Sum in the type of `x`.

    Few elements along the last axis, such as real and imaginary part, are summed slice by slice:
    the same bits 30 times as fast, since numpy calls its loop for each row otherwise.
    """
    if axes == (x.ndim - 1,) and 1 < x.shape[-1] < FEW and x.dtype.kind in "fiu":
        total: Array = x[..., 0:1] + x[..., 1:2]
        for at in range(2, x.shape[-1]):
            total += x[..., at : at + 1]
        return total
    return np.asarray(np.add.reduce(x, axis=axes, dtype=x.dtype, keepdims=True))


def reduce_mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Mean; of integers rounded toward zero, of nothing 0, as ONNX Runtime has both."""
    total, count = reduce_sum(x, axes), max(_count(x, axes), 1)
    if is_floating(x.dtype):
        return np.asarray(total / x.dtype.type(count))
    return np.trunc(total / count).astype(x.dtype)


def _prod(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.multiply.reduce(x, axis=axes, dtype=x.dtype, keepdims=True))


def _least(x: Array) -> object:
    """The neutral element of a maximum: -infinity, or the least integer."""
    if x.dtype.kind == "b":
        return False
    return -np.inf if is_floating(x.dtype) else np.iinfo(x.dtype).min


def _most(x: Array) -> object:
    if x.dtype.kind == "b":
        return True
    return np.inf if is_floating(x.dtype) else np.iinfo(x.dtype).max


def reduce_max(x: Array, axes: tuple[int, ...]) -> Array:
    """Largest; of no elements the least value of the type (ONNX ReduceMax-20)."""
    if _count(x, axes):
        return np.asarray(np.maximum.reduce(x, axis=axes, keepdims=True))
    return np.asarray(np.maximum.reduce(x, axis=axes, keepdims=True, initial=_least(x)))


def _min(x: Array, axes: tuple[int, ...]) -> Array:
    if _count(x, axes):
        return np.asarray(np.minimum.reduce(x, axis=axes, keepdims=True))
    return np.asarray(np.minimum.reduce(x, axis=axes, keepdims=True, initial=_most(x)))


def _l1(x: Array, axes: tuple[int, ...]) -> Array:
    return reduce_sum(np.abs(x), axes)


def _sum_square(x: Array, axes: tuple[int, ...]) -> Array:
    return reduce_sum(np.asarray(np.square(x)), axes)


def _l2(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.sqrt(_sum_square(x, axes))).astype(x.dtype, copy=False)


def _log_sum(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.log(reduce_sum(x, axes))).astype(x.dtype, copy=False)


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    """log(sum(exp(x))), shifted by the largest finite element so that exp cannot overflow."""
    if not _count(x, axes):
        return reduce_max(x, axes)
    peak = np.maximum.reduce(x, axis=axes, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, x.dtype.type(0))
    total = reduce_sum(np.asarray(np.exp(x - peak)), axes)
    return np.asarray(np.log(total) + peak).astype(x.dtype, copy=False)


_REDUCTIONS: Mapping[str, Reduce] = MappingProxyType(
    {
        "ReduceL1": _l1,
        "ReduceL2": _l2,
        "ReduceLogSum": _log_sum,
        "ReduceLogSumExp": _log_sum_exp,
        "ReduceMax": reduce_max,
        "ReduceMean": reduce_mean,
        "ReduceMin": _min,
        "ReduceProd": _prod,
        "ReduceSum": reduce_sum,
        "ReduceSumSquare": _sum_square,
    }
)


def _axes(axes: list[int] | None, rank: int) -> tuple[int, ...]:
    """The axes from the front; all of them if none are given."""
    if not axes:
        return tuple(range(rank))
    return tuple(axis_in(axis, rank) for axis in axes)


def _reduction(function: Reduce) -> KernelFactory:
    """Axes are an attribute in older versions of each operator, then an input."""

    def factory(info: KernelInfo) -> KernelFn:
        keep = bool(info.attr("keepdims", 1))
        nothing_if_empty = bool(info.attr("noop_with_empty_axes", 0))
        fixed = info.attr("axes")
        constant = info.constant(1)
        if constant is not None:
            fixed = integers(constant)

        def reduce(x: Array, axes: Array | None = None) -> Array:
            chosen = integers(axes) if fixed is None and axes is not None else fixed
            if not chosen and nothing_if_empty:
                return function(x[None], (0,)).reshape(x.shape)
            along = _axes(chosen, x.ndim)
            result = function(x, along)
            if keep:
                return result
            return result.reshape([d for i, d in enumerate(x.shape) if i not in along])

        return computing_wide(info, reduce)

    return factory


def _arg(function: Callable[..., Array]) -> KernelFactory:
    """ArgMax and ArgMin; of equal elements the first, or the last if asked."""

    def factory(info: KernelInfo) -> KernelFn:
        axis, keep = info.attr("axis", 0), bool(info.attr("keepdims", 1))
        last = bool(info.attr("select_last_index", 0))

        def arg(x: Array) -> Array:
            at = axis_in(axis, x.ndim)
            if not last:
                return np.asarray(function(x, at, keepdims=keep)).astype(np.int64, copy=False)
            from_end = function(np.flip(x, at), at, keepdims=keep)
            return np.asarray(x.shape[at] - 1 - from_end).astype(np.int64, copy=False)

        return arg

    return factory


KERNELS: tuple[KernelDef, ...] = (
    *(kernel(op, since=(1, 28))(_reduction(fn)) for op, fn in _REDUCTIONS.items()),
    kernel("ArgMax", since=(1, 13))(_arg(np.argmax)),
    kernel("ArgMin", since=(1, 13))(_arg(np.argmin)),
)

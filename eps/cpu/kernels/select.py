"""Operators whose result depends on which elements have which values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import axis_in, check_allocation, computing_wide
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFactory, KernelFn, KernelInfo


def _compress(info: KernelInfo) -> KernelFn:
    axis = info.attr("axis")

    def compress(x: Array, condition: Array) -> Array:
        return np.compress(condition, x, axis)

    return compress


def _non_zero(_: KernelInfo) -> KernelFn:
    """ONNX NonZero-13: indices by row; a scalar has no row."""

    def non_zero(x: Array) -> Array:
        if x.ndim == 0:
            return np.empty((0, int(bool(x[()]))), np.int64)
        return np.array(np.nonzero(x), np.int64)

    return non_zero


def _one_hot(info: KernelInfo) -> KernelFn:
    """ONNX OneHot; indices outside [-depth, depth) make no hot place."""
    axis = info.attr("axis", -1)

    def one_hot(indices: Array, depth: Array, values: Array) -> Array:
        size = int(depth.reshape(-1)[0])
        if size <= 0:
            raise ValueError(f"Depth is negative or zero: {size}")
        check_allocation((indices.size, size), values.dtype)
        hot = indices.reshape(-1).astype(np.int64)
        rows = np.flatnonzero((hot >= -size) & (hot < size))
        flat = np.full((indices.size, size), values[0], values.dtype)
        flat[rows, hot[rows]] = values[1]
        result = flat.reshape((*indices.shape, size))
        return np.moveaxis(result, -1, axis_in(axis, result.ndim))

    return one_hot


def _cumulative(function: np.ufunc, neutral: int) -> KernelFactory:
    """CumSum and CumProd: `function` accumulated, `neutral` first where exclusive."""

    def factory(info: KernelInfo) -> KernelFn:
        exclusive, reverse = bool(info.attr("exclusive", 0)), bool(info.attr("reverse", 0))

        def accumulate(x: Array, axis: Array) -> Array:
            at = axis_in(integers(axis)[0], x.ndim)
            source = np.flip(x, at) if reverse else x
            result = function.accumulate(source, at, dtype=x.dtype)
            if exclusive:
                shifted = np.moveaxis(np.empty_like(result), at, 0)
                shifted[:1] = neutral
                shifted[1:] = np.moveaxis(result, at, 0)[:-1]
                result = np.moveaxis(shifted, 0, at)
            return np.flip(result, at) if reverse else result

        return computing_wide(info, accumulate)

    return factory


def _unique(info: KernelInfo) -> KernelFn:
    """ONNX Unique-11: values, first places, inverse, counts."""
    axis, ordered = info.attr("axis"), bool(info.attr("sorted", 1))

    def unique(x: Array) -> tuple[Array, ...]:
        values, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.reshape(-1)
        if not ordered:
            order = np.argsort(first, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            values = np.take(values, order, 0 if axis is None else axis)
            first, inverse, counts = first[order], rank[inverse], counts[order]
        return values, *(part.astype(np.int64) for part in (first, inverse, counts))

    return unique


def top_k(x: Array, k: int, axis: int, *, largest: bool) -> tuple[Array, Array]:
    """The `k` largest (or smallest) along `axis`, sorted; of equal ones the first places.

    Raises:
        ValueError: k is negative or larger than the axis.
    """
    size = x.shape[axis]
    if not 0 <= k <= size:
        raise ValueError(f"k argument [{k}] should not be greater than axis dim [{size}]")
    rows = np.moveaxis(x, axis, -1)
    places = _few_places(rows, k, largest) if 4 * k < size else _places(rows, k, largest)
    values = np.take_along_axis(rows, places, -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis)


def _places(rows: Array, k: int, largest: bool) -> Array:  # noqa: FBT001 - as top_k
    """By a stable sort; from the largest down it sorts the reversed row and reverses that."""
    if not largest:
        return np.argsort(rows, -1, kind="stable")[..., :k]
    order = np.argsort(rows[..., ::-1], -1, kind="stable")[..., ::-1][..., :k]
    return np.asarray(rows.shape[-1] - 1 - order)


def _few_places(rows: Array, k: int, largest: bool) -> Array:  # noqa: FBT001 - as top_k
    """By a partition; rows with more candidates for the last place than fit are sorted."""
    size = rows.shape[-1]
    if k == 0:
        return np.empty((*rows.shape[:-1], 0), np.int64)
    cut = size - k if largest else k - 1
    parted = np.argpartition(rows, cut, -1)
    chosen = np.sort(parted[..., cut:] if largest else parted[..., :k], -1)
    values = np.take_along_axis(rows, chosen, -1)
    last = (values.min(-1) if largest else values.max(-1))[..., None]
    order = _places(values, k, largest)
    places = np.take_along_axis(chosen, order, -1)
    ties = (rows == last).sum(-1) != (values == last).sum(-1)
    if ties.any():  # NaN is equal to nothing: such rows stay as the partition gave them
        places[ties] = _places(rows[ties], k, largest)
    return places


def _top_k(info: KernelInfo) -> KernelFn:
    """ONNX TopK; k is an attribute before version 10, then an input."""
    fixed, axis = info.attr("k"), info.attr("axis", -1)
    largest = bool(info.attr("largest", 1))

    def run(x: Array, k: Array | None = None) -> tuple[Array, Array]:
        count = fixed if k is None else integers(k)[0]
        return top_k(x, count, axis_in(axis, x.ndim), largest=largest)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("Compress", since=(9, 28))(_compress),
    kernel("NonZero", since=(9, 13))(_non_zero),
    kernel("OneHot", since=(9, 28))(_one_hot),
    kernel("CumSum", since=(11, 14))(_cumulative(np.add, 0)),
    kernel("CumProd", since=(26, 26))(_cumulative(np.multiply, 1)),
    kernel("Unique", since=(11, 28))(_unique),
    kernel("TopK", since=(1, 24))(_top_k),
)

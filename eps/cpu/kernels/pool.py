"""Pools over windows: maximum, average, p-norm; and over the whole space."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation, computing_wide, is_floating
from eps.cpu.windows import (
    AxisWindow,
    WindowAttributes,
    pad_axis,
    pad_space,
    window_view,
)
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array, Empty
    from ort_lite.ep import KernelFn, KernelInfo


def along_axes(
    x: Array,
    axes: Sequence[AxisWindow],
    function: np.ufunc,
    fill: float,
    empty: Empty = np.empty,
) -> Array:
    """`function` over every window, one axis after the other, a tap at a time.

    Windows are boxes and the functions are associative, so that k + k passes over views do
    the work of k * k.
    """
    check_allocation((*x.shape[: x.ndim - len(axes)], *(a.count for a in axes)), x.dtype)
    result = x
    for d, axis in enumerate(axes):
        at = x.ndim - len(axes) + d
        source = pad_axis(result, at, axis, fill, empty)
        result = _accumulate(source, at, axis, function, empty)
    return result


def _accumulate(
    source: Array, at: int, axis: AxisWindow, function: np.ufunc, empty: Empty
) -> Array:
    before = (slice(None),) * at
    stop = (axis.count - 1) * axis.step + 1 if axis.count else 0
    taps = [
        source[(*before, slice(t * axis.spread, t * axis.spread + stop, axis.step))]
        for t in range(axis.taps)
    ]
    if len(taps) == 1:
        return taps[0]
    result = function(taps[0], taps[1], out=empty(taps[0].shape, source.dtype))
    for tap in taps[2:]:
        function(result, tap, out=result)
    return np.asarray(result)


def lowest(x: Array) -> float:
    """The neutral element of a maximum: -infinity or the least integer."""
    return -np.inf if is_floating(x.dtype) else int(np.iinfo(x.dtype).min)


def _max_pool(info: KernelInfo) -> KernelFn:
    """ONNX MaxPool; the second output has the index of each maximum in the flat tensor."""
    attributes = WindowAttributes.of(info)
    column_major = bool(info.attr("storage_order", 0))

    def pool(x: Array) -> Array:
        return along_axes(x, attributes.axes(x.shape[2:]), np.maximum, lowest(x), info.empty)

    def pool_with_indices(x: Array) -> tuple[Array, Array]:
        axes = attributes.axes(x.shape[2:])
        return max_with_places(x, axes, column_major=column_major)

    if info.n_outputs > 1 and info.is_output_used(1):
        return pool_with_indices
    return computing_wide(info, pool)


def max_with_places(
    x: Array, axes: Sequence[AxisWindow], *, column_major: bool
) -> tuple[Array, Array]:
    """Maxima of windows, and their places in the flat tensor; the first of equal ones.

    Args:
        x: [N, C, *space].
        axes: Windows along each axis of space.
        column_major: Places count as if the last two axes of space changed places.
    """
    rank = len(axes)
    space = x.shape[2:]
    windows = window_view(pad_space(x, axes, lowest(x)), axes)
    order = np.arange(int(np.prod(space, dtype=np.int64)))
    if column_major:
        order = order.reshape(space[::-1]).transpose(range(rank)[::-1])
    numbers = pad_space(order.reshape(1, 1, *space), axes, -1)
    number_windows = window_view(numbers, axes)[0, 0]
    counts = windows.shape[2 + rank :]
    taps = math.prod(number_windows.shape[:rank])
    flat = windows.reshape(*x.shape[:2], taps, *counts)
    best = np.argmax(flat, 2)[:, :, None]
    values = np.take_along_axis(flat, best, 2)[:, :, 0]
    flat_numbers = np.broadcast_to(
        number_windows.reshape(taps, *counts), (*x.shape[:2], flat.shape[2], *counts)
    )
    places = np.take_along_axis(flat_numbers, best, 2)[:, :, 0]
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *(1,) * rank)
    return values, (places + planes * order.size).astype(np.int64)


def element_counts(axes: Sequence[AxisWindow], *, with_padding: bool) -> Array:
    """How many elements each window averages: those inside, or inside and declared padding."""
    result = np.ones((), np.int64)
    for axis in axes:
        starts = np.arange(axis.count)[:, None] * axis.step - axis.before
        places = starts + np.arange(axis.taps) * axis.spread
        low, high = (-axis.before, axis.size + axis.after) if with_padding else (0, axis.size)
        inside = ((places >= low) & (places < high)).sum(1)
        result = result[..., None] * inside
    return result


def average_pool(info: KernelInfo) -> KernelFn:
    """ONNX AveragePool, all versions."""
    attributes = WindowAttributes.of(info)
    with_padding = bool(info.attr("count_include_pad", 0))

    def pool(x: Array) -> Array:
        axes = attributes.axes(x.shape[2:])
        total = along_axes(x, axes, np.add, 0, info.empty)
        counts = element_counts(axes, with_padding=with_padding).astype(x.dtype)
        return np.asarray(total / counts)

    return computing_wide(info, pool)


def _lp_pool(info: KernelInfo) -> KernelFn:
    """ONNX LpPool: the p-norm of every window."""
    attributes = WindowAttributes.of(info)
    order = float(info.attr("p", 2))

    def pool(x: Array) -> Array:
        powers = np.asarray(np.square(x) if order == 2 else np.abs(x) ** x.dtype.type(order))
        total = along_axes(powers, attributes.axes(x.shape[2:]), np.add, 0)
        return np.asarray(np.sqrt(total) if order == 2 else total ** x.dtype.type(1 / order))

    return computing_wide(info, pool)


def _space_axes(x: Array) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _global_average_pool(info: KernelInfo) -> KernelFn:
    def pool(x: Array) -> Array:
        count = math.prod(x.shape[2:])
        # BLAS is three times as fast, but does not add all rows in the same order.
        total: Array = np.add.reduce(x.reshape(math.prod(x.shape[:2]), count), 1)
        total /= x.dtype.type(count)
        return total.reshape(*x.shape[:2], *(1,) * (x.ndim - 2))

    return computing_wide(info, pool)


def _global_max_pool(_: KernelInfo) -> KernelFn:
    return lambda x: np.maximum.reduce(x, axis=_space_axes(x), keepdims=True)


def _global_lp_pool(info: KernelInfo) -> KernelFn:
    order = float(info.attr("p", 2))

    def pool(x: Array) -> Array:
        powers = np.abs(x) ** x.dtype.type(order)
        total = np.add.reduce(powers, axis=_space_axes(x), keepdims=True)
        return np.asarray(total ** x.dtype.type(1 / order))

    return computing_wide(info, pool)


def _max_unpool(info: KernelInfo) -> KernelFn:
    """ONNX MaxUnpool: values back at the indices that MaxPool returned, zero elsewhere."""
    attributes = WindowAttributes.of(info)

    def unpool(x: Array, places: Array, output_shape: Array | None = None) -> Array:
        rank = x.ndim - 2
        taps = attributes.kernel_shape or [1] * rank
        steps, pads = attributes.strides or [1] * rank, attributes.pads or [0] * (2 * rank)
        space = [
            (x.shape[2 + d] - 1) * steps[d] - pads[d] - pads[rank + d] + taps[d]
            for d in range(rank)
        ]
        planes = x.shape[0] * x.shape[1]
        size = math.prod(space)
        if output_shape is None:
            flat = np.zeros(check_allocation((planes * size,), x.dtype), x.dtype)
            flat[places.reshape(-1)] = x.reshape(-1)
            return flat.reshape(*x.shape[:2], *space)
        # Places count in the tensor before pooling, which may be smaller than the result.
        shape = check_allocation(output_shape.reshape(-1).tolist(), x.dtype)
        result = np.zeros(shape, x.dtype)
        where = np.unravel_index(places.reshape(-1), (*x.shape[:2], *space))
        result[where] = x.reshape(-1)
        return result

    return unpool


KERNELS: tuple[KernelDef, ...] = (
    kernel("MaxPool", since=(1, 22))(_max_pool),
    kernel("AveragePool", since=(1, 22))(average_pool),
    kernel("LpPool", since=(1, 22))(_lp_pool),
    kernel("GlobalAveragePool", since=(1, 22))(_global_average_pool),
    kernel("GlobalMaxPool", since=(1, 22))(_global_max_pool),
    kernel("GlobalLpPool", since=(1, 22))(_global_lp_pool),
    kernel("MaxUnpool", since=(9, 22))(_max_unpool),
)

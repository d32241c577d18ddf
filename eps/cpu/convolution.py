"""Convolution by matrix products over views of windows."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.array_pool import LEAST_BYTES
from eps.cpu.arrays import SIZES, on_last_axes
from eps.cpu.banded_convolution import banded_convolution, find_bands
from eps.cpu.block_convolution import block_convolution, pays_blocks
from eps.cpu.shared_products import multiply
from eps.cpu.windows import Padding, Windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array, DType, Empty
    from eps.cpu.windows import AxisWindow, Convolution, WindowAttributes

BLOCK_BYTES = 1 << 21
"""Columns are copied and multiplied this many bytes at a time, so that they stay in cache."""
MOST_PRODUCTS = 1 << 17
"""Of one channel; twice as many, and OpenBLAS hands each channel's product to its threads."""


def convolution(
    attributes: WindowAttributes, group: int, empty: Empty, fixed: Array | None = None
) -> Convolution:
    """ONNX Conv of one node, laid out once for each of the last SIZES sizes of input.

    Args:
        attributes: Of the node.
        group: Channels c of one group meet filters of that group only.
        empty: Makes results and temporaries.
        fixed: The filters, if they are the same in every run.

    Returns:
        A function that raises ValueError where channels, filters or windows do not fit.
    """

    @lru_cache(maxsize=SIZES)
    def plan_convolution(x: tuple[int, ...], w: tuple[int, ...], dtype: DType) -> Convolution:
        if len(x) < 3 or len(x) != len(w):
            raise ValueError(f"X of shape {x} and W of shape {w} do not fit")
        axes = attributes.axes(x[2:], w[2:])
        by_windows = _lay_out(_Matrices.of(x, w, axes, group), axes, dtype, empty)
        if fixed is not None and group == x[1] == w[0] and pays_rows(axes):
            filters = fixed.astype(dtype, copy=False)
            return row_convolution(x, filters, axes, empty, by_windows)
        if fixed is not None and group == x[1] == 1 and pays_blocks(w, axes):
            filters = fixed.astype(dtype, copy=False)
            return block_convolution(x, filters, axes, empty, by_windows)
        if fixed is not None and group == x[1] == 1:
            bands = find_bands(fixed.astype(dtype, copy=False), axes)
            if bands:
                return banded_convolution(x, bands, axes, empty, by_windows)
        return by_windows

    def run(x: Array, w: Array) -> Array:
        return plan_convolution(x.shape, w.shape, _common_type(x, w))(x, w)

    return run


def convolve(
    x: Array, w: Array, axes: Sequence[AxisWindow], group: int, empty: Empty = np.empty
) -> Array:
    """One convolution, laid out for this call.

    Args:
        x: [N, C, *space], float32 or float64.
        w: [M, C / group, *kernel].
        axes: Windows along each axis of space.
        group: As for `convolution`.
        empty: Makes the result and all temporaries.

    Raises:
        ValueError: Channels and filters do not fit.
    """
    matrices = _Matrices.of(x.shape, w.shape, axes, group)
    return _lay_out(matrices, axes, _common_type(x, w), empty)(x, w)


def _common_type(x: Array, w: Array) -> DType:
    return x.dtype if x.dtype == w.dtype else np.result_type(x, w)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matrices:
    """Shapes of a convolution as products, filters times columns, one for each group.

    Attributes:
        x: As it is given.
        filters: [M, depth], or by group.
        columns: [depth, points], or by batch and group.
        products: [M, points], or by batch and group.
        result: [N, M, *counts], the same elements.
    """

    x: tuple[int, ...]
    filters: tuple[int, ...]
    columns: tuple[int, ...]
    products: tuple[int, ...]
    result: tuple[int, ...]

    @classmethod
    def of(
        cls, x: Sequence[int], w: Sequence[int], axes: Sequence[AxisWindow], group: int
    ) -> _Matrices:
        """From the shapes of input and filters."""
        batch, channels, filters = x[0], x[1], w[0]
        if channels != w[1] * group or filters % group:
            raise ValueError(
                f"{channels} input channels and {filters} filters of {w[1]} channels do not "
                f"fit {group} groups"
            )
        counts = tuple(a.count for a in axes)
        depth, points, each = math.prod(w[1:]), math.prod(counts), filters // group
        result = (batch, filters, *counts)
        if batch == group == 1:
            return cls(
                x=tuple(x),
                filters=(filters, depth),
                columns=(depth, points),
                products=(filters, points),
                result=result,
            )
        return cls(
            x=tuple(x),
            filters=(group, each, depth),
            columns=(batch, group, depth, points),
            products=(batch, group, each, points),
            result=result,
        )


def _lay_out(
    matrices: _Matrices, axes: Sequence[AxisWindow], dtype: DType, empty: Empty
) -> Convolution:
    if all(a.taps == 1 for a in axes):
        return _pointwise(matrices, axes, dtype, empty)
    return _convolve_windows(matrices, axes, dtype, empty)


def _pointwise(m: _Matrices, axes: Sequence[AxisWindow], dtype: DType, empty: Empty) -> Convolution:
    """Windows of one element: the input is the columns."""
    padding = Padding.of(m.x, axes)
    steps = on_last_axes([slice(0, (a.count - 1) * a.step + 1, a.step) for a in axes])
    as_it_is = all(a.step == 1 for a in axes)

    def run(x: Array, w: Array) -> Array:
        points = x if padding is None else padding.pad(x, 0, empty)
        if not as_it_is:
            points = points[steps]
        result = empty(m.result, dtype)
        multiply(w.reshape(m.filters), points.reshape(m.columns), result.reshape(m.products))
        return result

    return run


def _convolve_windows(
    m: _Matrices, axes: Sequence[AxisWindow], dtype: DType, empty: Empty
) -> Convolution:
    """Windows are copied to columns, a block at a time."""
    windows = Windows.of(m.x, dtype, axes)
    row = math.prod(m.columns) * dtype.itemsize // max(axes[0].count, 1)
    rows = max(1, BLOCK_BYTES // max(row, 1))
    if rows >= axes[0].count:
        small = row * axes[0].count < LEAST_BYTES

        def at_once(x: Array, w: Array) -> Array:
            view = windows.view_of(x, empty)
            columns = view.reshape(m.columns) if small else _copy_windows(view, empty, m.columns)
            result = empty(m.result, dtype)
            multiply(w.reshape(m.filters), columns, result.reshape(m.products))
            return result

        return at_once

    inner = [slice(None)] * (len(axes) - 1)
    cuts = [slice(start, start + rows) for start in range(0, axes[0].count, rows)]

    def by_blocks(x: Array, w: Array) -> Array:
        view = windows.view_of(x, empty)
        filters, result = w.reshape(m.filters), empty(m.result, dtype)
        for cut in cuts:
            columns = _copy_windows(view[on_last_axes([cut, *inner])], empty, (*m.columns[:-1], -1))
            # The rows of one filter follow each other in memory, so that this is a view.
            target = result[:, :, cut].reshape(*m.products[:-1], -1, copy=False)
            multiply(filters, columns, target)
        return result

    return by_blocks


def _copy_windows(view: Array, empty: Empty, shape: Sequence[int]) -> Array:
    columns = empty(view.shape, view.dtype)
    np.copyto(columns, view)
    return columns.reshape(shape)


def pays_rows(axes: Sequence[AxisWindow]) -> bool:
    """Whether `row_convolution` is right and faster than copying whole windows.

    Nanoseconds, measured on 8 to 480 channels of 1 to 48 rows and 7 to 160 columns: whole windows
    repeat every element for each tap and make no product in vain; here elements are repeated for
    the taps of a row only, and products grow with the square of the number of rows.
    """
    if len(axes) != 2:
        return False
    across, along = axes
    products = across.count * across.size * along.taps * along.count
    by_rows = 0.04 * products + 0.25 * across.size * along.taps * along.count
    by_windows = 0.4 * across.taps * along.taps * across.count * along.count
    return by_rows < by_windows and products <= MOST_PRODUCTS


def row_convolution(
    x_shape: Sequence[int],
    w: Array,
    axes: Sequence[AxisWindow],
    empty: Empty,
    by_windows: Convolution,
) -> Convolution:
    """Depthwise filters [C, 1, kh, kw] ready for inputs of shape [N, C, H, W].

    Each channel is one matrix product: all rows of the result from all rows of the input, in which
    only the taps along a row are spread out. Rows that a filter does not meet are multiplied by 0;
    where that is not 0, for infinity and NaN, the answer is that of `by_windows`.
    """
    across, along = axes
    filters = row_filters(w, across)
    # Windows of one row: every row is a channel of its own.
    windows = Windows.of(x_shape, w.dtype, (along,))
    columns = (*x_shape[:2], across.size * along.taps, along.count)
    result = (*x_shape[:2], across.count, along.count)

    def run(x: Array, weights: Array) -> Array:
        view = windows.view_of(x, empty)
        spread = empty(view.shape, view.dtype)
        np.copyto(spread, view)
        y: Array = np.matmul(filters, spread.reshape(columns), out=empty(result, w.dtype))
        return y if math.isfinite(np.add.reduce(y, None)) else by_windows(x, weights)

    return run


def row_filters(w: Array, across: AxisWindow) -> Array:
    """Filters [C, 1, kh, kw] as matrices [C, rows of the result, rows of the input * kw]."""
    filters = np.zeros((w.shape[0], across.count, across.size, w.shape[3]), w.dtype)
    for row in range(across.count):
        first = row * across.step - across.before
        for tap in range(across.taps):
            source = first + tap * across.spread
            if 0 <= source < across.size:
                filters[:, row, source] = w[:, 0, tap]
    return filters.reshape(w.shape[0], across.count, -1)

"""Depthwise convolution of images of few rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array, Empty
    from eps.cpu.windows import AxisWindow, Convolution

MOST_PRODUCTS = 1 << 17
"""Of one channel; twice as many, and OpenBLAS hands each channel's product to its threads."""


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

    def run(x: Array, given: Array) -> Array:
        view = windows.over(x, empty)
        spread = empty(view.shape, view.dtype)
        np.copyto(spread, view)
        y: Array = np.matmul(filters, spread.reshape(columns), out=empty(result, w.dtype))
        return y if math.isfinite(np.add.reduce(y, None)) else by_windows(x, given)

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

"""Convolution of one channel by filters that are zero but for a band, as a resampler's are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.shared_products import multiply
from eps.cpu.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array, Empty
    from eps.cpu.windows import AxisWindow, Convolution

GROUP = 32
"""Filters in one product, over the taps that any of them has."""
NEGLIGIBLE = 2.0**-44
"""Of the largest weight: what a window function leaves at its ends, instead of 0."""
MOST_ERROR = 2.0**-30
"""Of the largest result, for all that is left out: a 128th of an epsilon."""
LEAST_TAPS = 64
LEAST_FILTERS = 48
MOST_LEFT = 0.5
"""Part of the multiplications that may be left. Products of few filters are slower: with 0.76, as
in spectrograms, all took 1.4 times as long."""


@dataclass(frozen=True, slots=True)
class Band:
    """Filters that follow each other, over the taps at which one of them is not negligible.

    Attributes:
        filters: Which ones.
        taps: Which taps; empty where all filters are zero.
        matrix: Their weights, [filters, taps].
        rest: The largest sum of the magnitudes that one of them has at other taps.
    """

    filters: slice
    taps: slice
    matrix: Array
    rest: float


def find_bands(w: Array, axes: Sequence[AxisWindow]) -> tuple[Band, ...]:
    """The bands of filters [M, 1, *ones, k] along the last axis; none where they do not pay.

    Args:
        w: The filters, the same in every run.
        axes: Windows along each axis of space.
    """
    *others, along = axes
    flat = all(a.taps == a.count == a.size == 1 and not a.before for a in others)
    if not flat or w.shape[1] != 1 or w.shape[0] < LEAST_FILTERS or along.taps < LEAST_TAPS:
        return ()
    matrix = w.reshape(w.shape[0], along.taps)
    if not np.isfinite(matrix).all():
        return ()
    sizes = np.abs(matrix.astype(np.float64))
    least = NEGLIGIBLE * sizes.max()
    cuts = [slice(start, start + GROUP) for start in range(0, len(matrix), GROUP)]
    bands = tuple(_band_of(matrix, sizes, least, cut) for cut in cuts)
    left = sum(band.matrix.size for band in bands)
    return bands if left <= MOST_LEFT * matrix.size else ()


def _band_of(matrix: Array, sizes: Array, least: float, filters: slice) -> Band:
    used = np.flatnonzero((sizes[filters] > least).any(axis=0))
    taps = slice(int(used[0]), int(used[-1]) + 1) if used.size else slice(0, 0)
    rest = sizes[filters].copy()
    rest[:, taps] = 0
    weights = np.ascontiguousarray(matrix[filters, taps])
    return Band(filters, taps, weights, float(rest.sum(axis=1).max()))


def banded_convolution(
    x_shape: Sequence[int],
    bands: Sequence[Band],
    axes: Sequence[AxisWindow],
    empty: Empty,
    by_windows: Convolution,
) -> Convolution:
    """Filters by `find_bands` ready for inputs of shape [N, 1, *ones, L].

    Where what is left out could be more than MOST_ERROR of the largest result, and with infinity
    and NaN, the answer is that of `by_windows`.
    """
    along = axes[-1]
    batch, filters = x_shape[0], sum(len(band.matrix) for band in bands)
    rest = max(band.rest for band in bands)
    dtype = bands[0].matrix.dtype
    windows = Windows.of((batch, x_shape[-1]), dtype, (along,))
    result = (batch, filters, *(a.count for a in axes))

    def run(x: Array, weights: Array) -> Array:
        largest = _magnitude(x)
        if not math.isfinite(largest):
            return by_windows(x, weights)
        view = windows.view_of(x.reshape(batch, -1), empty)
        columns = empty(view.shape, dtype)
        np.copyto(columns, view)
        y = empty(result, dtype)
        rows = y.reshape(batch, filters, along.count)
        for band in bands:
            multiply(band.matrix, columns[:, band.taps], rows[:, band.filters])
        if rest * largest > MOST_ERROR * _magnitude(y):
            return by_windows(x, weights)
        return y

    return run


def _magnitude(x: Array) -> float:
    """The largest magnitude; NaN if there is one."""
    if not x.size:
        return 0.0
    return max(float(np.maximum.reduce(x, None)), -float(np.minimum.reduce(x, None)))

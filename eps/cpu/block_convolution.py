"""Convolution of one channel by few long filters, such as a resampler's, by blocks of windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from eps.cpu.shared_products import multiply
from eps.cpu.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array, Empty
    from eps.cpu.windows import AxisWindow, Convolution

BLOCK = 16
"""Windows that are computed from one row: it repeats fewer elements, and multiplies more zeros."""
LEAST_OVERLAP = 7
"""In how many windows an element lies; below, whole windows repeat it too rarely to lose time."""
LEAST_TAPS = 16
LEAST_COUNT = 512
MOST_FILTERS = 2


def pays_blocks(w: Sequence[int], axes: Sequence[AxisWindow]) -> bool:
    """Whether `block_convolution` is right and faster than copying whole windows.

    Measured on 16,000 samples: half of the time for one filter of 28 to 80 taps over steps of 2 to
    6, 0.85 for two of 23 over steps of 3, nothing gained with 15 taps or four filters.

    Args:
        w: Shape of the filters [M, C / group, *kernel].
        axes: Windows along each axis of space.
    """
    *others, along = axes
    flat = all(a.taps == a.count == a.size == 1 and not a.before for a in others)
    return (
        flat
        and w[0] <= MOST_FILTERS
        and w[1] == along.spread == 1
        and along.taps >= max(LEAST_TAPS, LEAST_OVERLAP * along.step)
        and along.count >= LEAST_COUNT
    )


def block_convolution(
    x_shape: Sequence[int],
    w: Array,
    axes: Sequence[AxisWindow],
    empty: Empty,
    by_windows: Convolution,
) -> Convolution:
    """Filters [M, 1, *ones, k] ready for inputs of shape [N, 1, *ones, L].

    A row holds all elements of BLOCK windows that follow each other. Its product with a matrix
    that has the filters at BLOCK places is BLOCK windows of each filter. Elements outside of a
    window are multiplied by 0; where that is not 0, for infinity and NaN, the answer is that of
    `by_windows`.
    """
    along = axes[-1]
    filters, batch, count = w.shape[0], x_shape[0], along.count
    matrix = _repeat_filters(w, along)
    blocks = -(-count // BLOCK)
    block = replace(along, taps=matrix.shape[0], step=along.step * BLOCK, count=blocks)
    windows = Windows.of((batch, x_shape[-1]), w.dtype, (block,))
    result = (batch, filters, *(a.count for a in axes))

    def run(x: Array, weights: Array) -> Array:
        view = windows.view_of(x.reshape(batch, -1), empty).swapaxes(1, 2)
        rows = empty(view.shape, view.dtype)
        np.copyto(rows, view)
        products = empty((batch, blocks, filters, BLOCK), w.dtype)
        multiply(rows.reshape(-1, matrix.shape[0]), matrix, products.reshape(-1, matrix.shape[1]))
        if not math.isfinite(np.add.reduce(products, None)):
            return by_windows(x, weights)
        ordered: Array = products.swapaxes(1, 2).reshape(batch, filters, -1)[..., :count]
        return ordered.reshape(result)

    return run


def _repeat_filters(w: Array, along: AxisWindow) -> Array:
    """Filters [M, 1, *ones, k] at BLOCK places, [elements of a block, M * BLOCK]."""
    filters, taps = w.shape[0], along.taps
    places = np.zeros(((BLOCK - 1) * along.step + taps, filters, BLOCK), w.dtype)
    for place in range(BLOCK):
        start = place * along.step
        places[start : start + taps, :, place] = w.reshape(filters, taps).T
    return places.reshape(-1, filters * BLOCK)

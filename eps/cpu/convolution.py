"""Convolution by matrix products over views of windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from eps.cpu.arrays import on_last_axes
from eps.cpu.windows import AxisWindow, padded_space, window_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array, Empty

BLOCK_BYTES = 1 << 21
"""Columns are copied and multiplied this many bytes at a time, so that they stay in cache."""

MOST_BAND_BYTES = 1 << 23
"""Filters of one node are kept as bands up to this size."""


def convolve(
    x: Array, w: Array, axes: Sequence[AxisWindow], group: int, empty: Empty = np.empty
) -> Array:
    """ONNX Conv without bias.

    Args:
        x: [N, C, *space], float32 or float64.
        w: [M, C / group, *kernel].
        axes: Windows along each axis of space.
        group: Channels c of one group meet filters of that group only.
        empty: Makes the result and all temporaries.

    Returns:
        [N, M, *counts].

    Raises:
        ValueError: Channels and filters do not fit.
    """
    channels, filters = x.shape[1], w.shape[0]
    if channels != w.shape[1] * group or filters % group:
        raise ValueError(
            f"{channels} input channels and {filters} filters of {w.shape[1]} channels do not "
            f"fit {group} groups"
        )
    counts = tuple(a.count for a in axes)
    result = empty((x.shape[0], filters, *counts), np.result_type(x, w))
    if not result.size:
        return result
    if all(a.taps == 1 for a in axes):
        points = padded_space(x, axes, empty=empty)
        if any(a.step > 1 for a in axes):
            steps = [slice(0, (a.count - 1) * a.step + 1, a.step) for a in axes]
            points = points[on_last_axes(steps)]
        _multiply(points.reshape(x.shape[0], group, -1, math.prod(counts)), w, result)
        return result
    view = window_view(padded_space(x, axes, empty=empty), axes)
    rows = _rows_of_a_block(view, len(axes))
    for start in range(0, counts[0], rows):
        cut = [slice(start, start + rows), *[slice(None)] * (len(axes) - 1)]
        block = view[on_last_axes(cut)]
        columns = empty(block.shape, block.dtype)
        np.copyto(columns, block)
        columns = columns.reshape(x.shape[0], group, w[0].size, -1)
        _multiply(columns, w, result[:, :, start : start + rows])
    return result


def _rows_of_a_block(view: Array, rank: int) -> int:
    """How many rows of windows fit into BLOCK_BYTES as columns; at least one."""
    row: int = view.size // view.shape[-rank] * view.itemsize
    return max(1, BLOCK_BYTES // max(row, 1))


def _multiply(columns: Array, w: Array, out: Array) -> None:
    """out = filters times columns [N, group, C/group * kernel, P], group by group."""
    batch, group, depth, points = columns.shape
    if batch == group == 1:
        plane = out.reshape(w.shape[0], points, copy=False)
        np.matmul(w.reshape(-1, depth), columns[0, 0], out=plane)
        return
    filters = w.reshape(group, -1, depth)
    # The rows of one filter follow each other in memory, so that this is a view of `out`.
    target = out.reshape(batch, group, filters.shape[1], points, copy=False)
    np.matmul(filters, columns, out=target)


def banded_filters(w: Array, axes: Sequence[AxisWindow]) -> Array:
    """Depthwise filters [C, 1, kh, kw] as matrices from padded rows to rows of results.

    Entry [c, i * width + x, j] is the weight with which element x of the i-th row under the
    filter contributes to result j of the row.
    """
    _, axis = axes
    width = axis.before + axis.size + axis.reach
    kh, kw = w.shape[2:]
    bands = np.zeros((w.shape[0], kh, width, axis.count), w.dtype)
    for j in range(axis.count):
        bands[:, :, j * axis.step : j * axis.step + kw, j] = w[:, 0]
    return bands.reshape(w.shape[0], kh * width, axis.count)


def convolve_banded(
    x: Array, bands: Array, axes: Sequence[AxisWindow], empty: Empty = np.empty
) -> Array:
    """Depthwise convolution with `banded_filters`: whole rows are multiplied, none copied.

    kh rows that follow each other in memory are one row of a matrix that overlaps the next.
    It wastes work on zeros, and pays where rows are short or kernels large.
    """
    padded = np.ascontiguousarray(padded_space(x, axes, empty=empty))
    n, c, row, item = padded.strides
    shape = (*x.shape[:2], axes[0].count, bands.shape[1])
    rows = as_strided(padded, shape, (n, c, row * axes[0].step, item), writeable=False)
    result = empty((*shape[:3], bands.shape[2]), np.result_type(x, bands))
    return np.matmul(rows, bands, out=result)


def pays_banded(x_shape: Sequence[int], w: Array, axes: Sequence[AxisWindow]) -> bool:
    """Whether `convolve_banded` is right and the faster way.

    Nanoseconds, measured on 32 to 384 channels of 2 to 160 pixels: either way a matrix
    product for each channel; for windows every element is copied and read once, for bands
    every product is made, and the bands come from memory.
    """
    if len(axes) != 2 or w.shape[1] != 1 or w.shape[0] != x_shape[1]:
        return False
    if any(a.spread != 1 or a.before > a.size + a.taps for a in axes):
        return False
    width = axes[1].before + axes[1].size + axes[1].reach
    band = axes[0].taps * width * axes[1].count
    by_bands = 1000 + 0.04 * band * axes[0].count + band * w.itemsize / 12
    by_windows = 1000 + 0.4 * axes[0].taps * axes[1].taps * axes[0].count * axes[1].count
    return by_bands < by_windows and w.shape[0] * band * w.itemsize <= MOST_BAND_BYTES

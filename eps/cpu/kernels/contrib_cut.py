"""Pieces of tensors: com.microsoft UnfoldTensor, CropAndResize, DynamicTimeWarping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from eps.cpu.arrays import axis_in, check_allocation
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"


def _unfold(info: KernelInfo) -> KernelFn:
    """UnfoldTensor-1: windows of `size` along `dim`, every `step`; their content comes last."""
    dim, size, step = (int(info.attr(*one)) for one in (("dim", -1), ("size", 1), ("step", 1)))

    def run(x: Array) -> Array:
        axis = axis_in(dim, x.ndim)
        if step < 1 or not 0 < size <= x.shape[axis]:
            raise ValueError(f"windows of {size} every {step} in {x.shape[axis]} elements")
        windows = sliding_window_view(x, size, axis)
        return np.ascontiguousarray(windows[(slice(None),) * axis + (slice(None, None, step),)])

    return run


def _crop_and_resize(info: KernelInfo) -> KernelFn:
    """CropAndResize-1 of X [N, C, H, W]: [boxes, C, height, width].

    A box is [y1, x1, y2, x2] in units of the image's size less one; samples outside of the
    image are `extrapolation_value`.
    """
    nearest = info.attr("mode", "bilinear") == "nearest"
    outside = float(info.attr("extrapolation_value", 0.0))

    def run(x: Array, boxes: Array, images: Array, sizes: Array) -> Array:
        high, wide = (int(n) for n in sizes)
        check_allocation((len(boxes), x.shape[1], high, wide), x.dtype)
        result = np.full((len(boxes), x.shape[1], high, wide), outside, x.dtype)
        for index, ((y1, x1, y2, x2), image) in enumerate(zip(boxes, images, strict=True)):
            if not 0 <= image < x.shape[0]:
                raise ValueError(f"image {image} of {x.shape[0]}")
            ys, inside_y = _samples(y1, y2, high, x.shape[2])
            xs, inside_x = _samples(x1, x2, wide, x.shape[3])
            taken = _sample(x[image], ys[inside_y], xs[inside_x], nearest=nearest)
            result[index][:, np.ix_(inside_y, inside_x)[0], np.ix_(inside_y, inside_x)[1]] = taken
        return result

    return run


def _samples(first: float, last: float, count: int, size: int) -> tuple[Array, Array]:
    """Positions along one axis, and indices of those inside the image."""
    one = np.float32
    if count > 1:
        step = one(last - first) * one(size - 1) / one(count - 1)
        at = one(first) * one(size - 1) + np.arange(count, dtype=np.float32) * step
    else:
        at = np.array([one(0.5) * one(first + last) * one(size - 1)], np.float32)
    return at, np.flatnonzero((at >= 0) & (at <= size - 1))


def _sample(x: Array, ys: Array, xs: Array, *, nearest: bool) -> Array:
    """[C, len(ys), len(xs)] of an image [C, H, W]."""
    if nearest:
        rows, columns = (np.floor(at + np.float32(0.5)).astype(np.intp) for at in (ys, xs))
        return x[:, rows[:, None], columns]
    top, left = np.floor(ys).astype(np.intp), np.floor(xs).astype(np.intp)
    below, right = np.ceil(ys).astype(np.intp), np.ceil(xs).astype(np.intp)
    down, along = (ys - top).astype(x.dtype)[:, None], (xs - left).astype(x.dtype)
    upper = x[:, top[:, None], left]
    upper = upper + (x[:, top[:, None], right] - upper) * along
    lower = x[:, below[:, None], left]
    lower = lower + (x[:, below[:, None], right] - lower) * along
    return np.asarray(upper + (lower - upper) * down)


def _time_warping(_: KernelInfo) -> KernelFn:
    """DynamicTimeWarping-1: the cheapest monotonic path through costs [M, N], as int32 [2, steps].

    Of equal costs a step along both axes is last: it is taken where it is cheaper than either.
    """

    def run(x: Array) -> Array:
        costs = x[0] if x.ndim == 3 else x
        if costs.ndim != 2 or (x.ndim == 3 and x.shape[0] != 1):
            raise ValueError(f"costs of shape {x.shape}, expected [M, N] or [1, M, N]")
        rows, columns = costs.shape
        total = np.full((rows + 1, columns + 1), np.inf, np.float32)
        total[0, 0] = 0
        trace = np.empty((rows + 1, columns + 1), np.int8)
        trace[0], trace[:, 0] = 2, 1
        for j in range(1, columns + 1):
            for i in range(1, rows + 1):
                both, up, left = total[i - 1, j - 1], total[i - 1, j], total[i, j - 1]
                if both < up and both < left:
                    step, least = 0, both
                elif up < both and up < left:
                    step, least = 1, up
                else:
                    step, least = 2, left
                total[i, j], trace[i, j] = costs[i - 1, j - 1] + least, step
        path = []
        i, j = rows, columns
        while i > 0 or j > 0:
            path.append((i - 1, j - 1))
            step = trace[i, j]
            i, j = i - (step != 2), j - (step != 1)
        return np.array(path[::-1], np.int32).reshape(-1, 2).T.copy()

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("UnfoldTensor", domain=DOMAIN)(_unfold),
    kernel("CropAndResize", domain=DOMAIN)(_crop_and_resize),
    kernel("DynamicTimeWarping", domain=DOMAIN)(_time_warping),
)

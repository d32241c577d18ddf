"""Regions of images: RoiAlign, MaxRoiPool."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import check_allocation, computing_wide
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


MAX_SAMPLES = 1 << 22
"""In all bins along one axis of a region; one that names more is not part of an image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoiAlign:
    """Attributes of a node."""

    height: int
    width: int
    ratio: int
    scale: float
    shift: float
    largest: bool

    def run(self, x: Array, rois: Array, batches: Array) -> Array:
        """[regions, C, height, width] of x [N, C, H, W]."""
        shape = (rois.shape[0], x.shape[1], self.height, self.width)
        result = np.empty(check_allocation(shape, x.dtype), x.dtype)
        kind = x.dtype.type
        for i, (roi, n) in enumerate(zip(rois, batches.tolist(), strict=True)):
            x1, y1, x2, y2 = roi * kind(self.scale) - kind(self.shift)
            rows = self._samples(y1, y2, self.height, x.shape[2])
            columns = self._samples(x1, x2, self.width, x.shape[3])
            result[i] = (_max_neighbour if self.largest else _mean)(x[n], rows, columns)
        return result

    def _samples(self, start: Any, end: Any, bins: int, size: int) -> _Samples:  # noqa: ANN401 - scalars of x's type
        """Sample positions of bins along one axis.

        In the type of the tensor and in ONNX Runtime's order, so that samples on the edge of
        the tensor fall on the same side.
        """
        kind = type(start)
        length = end - start if self.shift else max(end - start, kind(1))
        step = kind(length / kind(bins))
        count = self.ratio if self.ratio > 0 else max(math.ceil(length / kind(bins)), 0)
        if bins * count > MAX_SAMPLES:
            raise ValueError(f"a region of {length} takes {count} samples in each of {bins} bins")
        first = start + np.arange(bins, dtype=kind)[:, None] * step
        at = first + (np.arange(count, dtype=kind) + kind(0.5)) * step / kind(max(count, 1))
        outside = (at < -1) | (at > size)
        at = np.clip(at, 0, size - 1)
        below = np.floor(at).astype(np.intp)
        high = np.where(outside, 0, at - below).astype(kind)
        low = np.where(outside, 0, 1 - high).astype(kind)
        return _Samples(below, np.minimum(below + 1, size - 1), low, high, size)


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples [bins, count] along one axis: two neighbours and their weights."""

    below: Array
    above: Array
    low: Array
    high: Array
    size: int

    def mean_matrix(self) -> Array:
        """Weights [bins, size] whose product with the axis is the mean of each bin."""
        bins, count = self.below.shape
        result = np.zeros((bins, self.size), self.low.dtype)
        rows = np.arange(bins)[:, None]
        np.add.at(result, (rows, self.below), self.low)
        np.add.at(result, (rows, self.above), self.high)
        return np.asarray(result / self.low.dtype.type(max(count, 1)))


def _mean(x: Array, rows: _Samples, columns: _Samples) -> Array:
    """Interpolation and mean are linear in each axis: two small matrices do both."""
    return np.asarray(rows.mean_matrix() @ x @ columns.mean_matrix().T)


def _max_neighbour(x: Array, rows: _Samples, columns: _Samples) -> Array:
    """The largest weighted neighbour of all samples of a bin, as the reference has it."""
    shape = (x.shape[0], *rows.below.shape, *columns.below.shape)
    if 0 in shape:
        return np.zeros((shape[0], shape[1], shape[3]), x.dtype)
    check_allocation(shape, x.dtype)
    best = None
    for at_y, weight_y in ((rows.below, rows.low), (rows.above, rows.high)):
        for at_x, weight_x in ((columns.below, columns.low), (columns.above, columns.high)):
            values = x[:, at_y.reshape(-1)][:, :, at_x.reshape(-1)]
            weighted = values * (weight_y.reshape(-1, 1) * weight_x.reshape(-1))
            best = weighted if best is None else np.maximum(best, weighted)
    assert best is not None, "there are four neighbours"
    return np.asarray(best.reshape(shape).max((2, 4)))


def _roi_align(info: KernelInfo) -> KernelFn:
    """ONNX RoiAlign; version 10 does not shift coordinates by half a pixel."""
    how = info.attr("coordinate_transformation_mode", "output_half_pixel")
    mode = info.attr("mode", "avg")
    if how not in ("half_pixel", "output_half_pixel") or mode not in ("avg", "max"):
        raise ValueError(f"RoiAlign: mode '{mode}', coordinate_transformation_mode '{how}'")
    align = _RoiAlign(
        height=info.attr("output_height", 1),
        width=info.attr("output_width", 1),
        ratio=info.attr("sampling_ratio", 0),
        scale=float(info.attr("spatial_scale", 1.0)),
        shift=0.5 if how == "half_pixel" else 0.0,
        largest=mode == "max",
    )
    return computing_wide(info, align.run)


def _max_roi_pool(info: KernelInfo) -> KernelFn:
    """ONNX MaxRoiPool: each region cut into bins of whole elements; empty bins give 0."""
    height, width = info.attr("pooled_shape")
    scale = float(info.attr("spatial_scale", 1.0))

    def edges(start: int, end: int, bins: int, size: int) -> list[tuple[int, int]]:
        length = max(end - start + 1, 1)
        step = length / bins
        pairs = ((math.floor(i * step), math.ceil((i + 1) * step)) for i in range(bins))
        return [(min(max(a + start, 0), size), min(max(b + start, 0), size)) for a, b in pairs]

    def run(x: Array, rois: Array) -> Array:
        shape = check_allocation((rois.shape[0], x.shape[1], height, width), x.dtype)
        result = np.zeros(shape, x.dtype)
        for i, roi in enumerate(rois.tolist()):
            # C's round: halves go away from zero
            corners = [math.floor(abs(v) * scale + 0.5) * (1 if v >= 0 else -1) for v in roi[1:]]
            rows = edges(corners[1], corners[3], height, x.shape[2])
            columns = edges(corners[0], corners[2], width, x.shape[3])
            image = x[int(roi[0])]
            for (r, (y0, y1)), (c, (x0, x1)) in (
                (a, b) for a in enumerate(rows) for b in enumerate(columns)
            ):
                if y1 > y0 and x1 > x0:
                    result[i, :, r, c] = image[:, y0:y1, x0:x1].max((1, 2))
        return result

    return computing_wide(info, run)


KERNELS: tuple[KernelDef, ...] = (
    kernel("RoiAlign", since=(10, 22))(_roi_align),
    kernel("MaxRoiPool", since=(1, 22))(_max_roi_pool),
)

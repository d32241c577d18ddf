"""Boxes: NonMaxSuppression, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import check_allocation, computing_wide
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def corners_of(boxes: Array, *, centered: bool) -> tuple[Array, Array]:
    """Lower and upper corners [2, n] of boxes [n, 4].

    Boxes are two opposite corners (y, x, y, x) in any order, or centre and size (x, y, w, h).
    """
    rows = boxes.T
    if centered:
        half = rows[2:] / 2
        return rows[:2] - half, rows[:2] + half
    return np.minimum(rows[:2], rows[2:]), np.maximum(rows[:2], rows[2:])


def kept_boxes(low: Array, high: Array, scores: Array, limit: int, threshold: float) -> Array:
    """Indices of boxes, best first, none overlapping a kept one by more than `threshold`.

    Args:
        low: Lower corners [2, n].
        high: Upper corners [2, n].
        scores: [n]; of equal ones the first box comes first.
        limit: How many to keep at most.
        threshold: Of intersection over union; equality does not suppress.
    """
    order = np.argsort(-scores, kind="stable")
    low, high = low[:, order], high[:, order]
    parts = _distant_parts(low, high) if order.size > _BLOCK else []
    if parts:
        kept = [part[_suppress(low[:, part], high[:, part], limit, threshold)] for part in parts]
        places = np.sort(np.concatenate(kept))[:limit]
    else:
        places = _suppress(low, high, limit, threshold)
    indices: Array = order[places]
    return indices


def _distant_parts(low: Array, high: Array) -> list[Array]:
    """Places of boxes [n], ascending, in parts that share no point with each other.

    Detectors of many classes move the boxes of each class to a place of its own and suppress the
    boxes of all classes at once.
    """
    for axis in (0, 1):
        along = np.argsort(low[axis], kind="stable")
        reach = np.maximum.accumulate(high[axis][along])
        gaps = np.flatnonzero(low[axis][along][1:] >= reach[:-1]) + 1
        if gaps.size:
            return [np.sort(part) for part in np.split(along, gaps)]
    return []


def _suppress(low: Array, high: Array, limit: int, threshold: float) -> Array:
    """As `kept_boxes`, of boxes with the best first; their places, ascending."""
    places = np.arange(low.shape[1])
    area = np.prod(high - low, axis=0)
    kept: list[int] = []
    while places.size and len(kept) < limit:
        # A block at a time: the best ones among themselves, then all others against the kept.
        head = (low[:, :_BLOCK], high[:, :_BLOCK], area[:_BLOCK])
        chosen = _first_free(_overlap_mask(head, head, threshold))[: limit - len(kept)]
        kept.extend(places[chosen].tolist())
        if places.size <= _BLOCK:
            break
        best = (low[:, chosen], high[:, chosen], area[chosen])
        rest = (low[:, _BLOCK:], high[:, _BLOCK:], area[_BLOCK:])
        left = np.flatnonzero(~_overlap_mask(best, rest, threshold).any(0)) + _BLOCK
        places, low, high, area = places[left], low[:, left], high[:, left], area[left]
    return np.array(kept, np.int64)


_BLOCK = 64
"""Bits of a word."""


def _overlap_mask(
    some: tuple[Array, Array, Array], others: tuple[Array, Array, Array], threshold: float
) -> Array:
    """Boolean [n, m]: whether boxes share more than `threshold` of their union.

    Boxes are lower corners [2, n], upper corners [2, n] and areas [n].
    """
    low, high, area = some
    shared: Array | None = None
    for axis in (0, 1):
        sides = np.minimum(high[axis][:, None], others[1][axis])
        sides -= np.maximum(low[axis][:, None], others[0][axis])
        np.maximum(sides, 0, out=sides)
        shared = sides if shared is None else np.multiply(shared, sides, out=shared)
    assert shared is not None
    # shared / union > threshold, without dividing by an empty union
    union = others[2] + area[:, None]
    union -= shared
    union *= threshold
    return (shared > union) & (shared > 0)


def _first_free(overlaps: Array) -> list[int]:
    """Greedily the rows of [n, n] that no earlier chosen row overlaps; n is a block at most."""
    packed = np.packbits(overlaps, axis=1, bitorder="little")
    words = np.zeros((len(packed), _BLOCK // 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    chosen, taken = [], 0
    for i, row in enumerate(words.view("<u8")[:, 0].tolist()):  # a word has as many bits
        if not taken >> i & 1:
            chosen.append(i)
            taken |= row
    return chosen


def _candidates(scores: Array, least: Array | None) -> Iterator[tuple[int, Array]]:
    """Classes of scores [classes, n] with boxes whose score is above `least`, and those boxes."""
    count = scores.shape[1]
    if least is None or not least.size:
        yield from enumerate(np.broadcast_to(np.arange(count), scores.shape))
        return
    places = np.flatnonzero(scores > least.reshape(-1)[0])  # of two axes it takes ten times as long
    classes, boxes = np.divmod(places, max(count, 1))
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    yield from zip(classes[starts].tolist(), np.split(boxes, starts[1:]), strict=False)


def _scalar(value: Array | None, default: float) -> float:
    return default if value is None or not value.size else float(value.reshape(-1)[0])


def _non_max_suppression(info: KernelInfo) -> KernelFn:
    """ONNX NonMaxSuppression: rows of batch, class and box."""
    centered = bool(info.attr("center_point_box", 0))

    def run(
        boxes: Array,
        scores: Array,
        limit: Array | None = None,
        iou: Array | None = None,
        least: Array | None = None,
    ) -> Array:
        most = int(_scalar(limit, 0))
        threshold = _scalar(iou, 0.0)
        if not 0 <= threshold <= 1:
            raise ValueError(f"iou_threshold must be in range [0, 1], it is {threshold}")
        rows = []
        for n in range(boxes.shape[0] if most > 0 else 0):
            for c, good in _candidates(scores[n], least):
                low, high = corners_of(boxes[n, good], centered=centered)
                kept = kept_boxes(low, high, scores[n, c, good], most, threshold)
                selected = np.empty((kept.size, 3), np.int64)
                selected[:, 0], selected[:, 1], selected[:, 2] = n, c, good[kept]
                rows.append(selected)
        return np.concatenate(rows) if rows else np.empty((0, 3), np.int64)

    return run


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
    kernel("NonMaxSuppression", since=(10, 11))(_non_max_suppression),
    kernel("RoiAlign", since=(10, 22))(_roi_align),
    kernel("MaxRoiPool", since=(1, 22))(_max_roi_pool),
)

"""NonMaxSuppression: boxes that overlap no better one, by batch and class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
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
    """Boolean [..., n, m]: whether boxes share more than `threshold` of their union.

    Boxes are lower corners [2, ..., n], upper corners [2, ..., n] and areas [..., n].
    """
    low, high, area = some
    shared: Array | None = None
    for axis in (0, 1):
        sides = np.minimum(high[axis][..., None], others[1][axis][..., None, :])
        sides -= np.maximum(low[axis][..., None], others[0][axis][..., None, :])
        np.maximum(sides, 0, out=sides)
        shared = sides if shared is None else np.multiply(shared, sides, out=shared)
    assert shared is not None
    # shared / union > threshold, without dividing by an empty union
    union = others[2][..., None, :] + area[..., None]
    union -= shared
    union *= threshold
    return (shared > union) & (shared > 0)


def _first_free(overlaps: Array) -> list[int]:
    """Greedily the rows of [n, n] that no earlier chosen row overlaps; n is a block at most."""
    chosen, taken = [], 0
    for i, row in enumerate(_words(overlaps).tolist()):
        if not taken >> i & 1:
            chosen.append(i)
            taken |= row
    return chosen


def _words(overlaps: Array) -> Array:
    """Rows of booleans [..., n] as words [...], first bit first; n is a block at most."""
    packed = np.packbits(overlaps, axis=-1, bitorder="little")
    words = np.zeros((*packed.shape[:-1], _BLOCK // 8), np.uint8)
    words[..., : packed.shape[-1]] = packed
    return words.view("<u8")[..., 0]


FEWEST_CLASSES = 4
"""Small classes from which on they are suppressed side by side."""
MOST_PAIRS = 1 << 20
"""Of boxes that are compared at once."""


def _keep_of_classes(
    classes: Array, corners: tuple[Array, Array], scores: Array, limit: int, threshold: float
) -> Array:
    """As `kept_boxes` of each class for itself: places of boxes, class by class.

    Args:
        classes: Of boxes [n], ascending.
        corners: Of the boxes, lower and upper ones [2, n].
        scores: [n].
        limit: How many to keep of a class at most.
        threshold: Of intersection over union.
    """
    low, high = corners
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    sizes = np.diff(starts, append=classes.size)
    small = sizes <= _BLOCK
    if np.count_nonzero(small) < FEWEST_CLASSES:
        small[:] = False
    kept = []
    for start, size in zip(starts[~small].tolist(), sizes[~small].tolist(), strict=True):
        part = slice(start, start + size)
        places = kept_boxes(low[:, part], high[:, part], scores[part], limit, threshold)
        kept.append(places + start)
    starts, sizes = starts[small], sizes[small]
    step = max(1, MOST_PAIRS // int(sizes.max(initial=1)) ** 2)
    for at in range(0, starts.size, step):
        part = slice(at, at + step)
        members = _sorted_members(starts[part], sizes[part], scores)
        kept.append(_keep_side_by_side(members, sizes[part], low, high, limit, threshold))
    places = np.concatenate(kept)
    ordered: Array = places[np.argsort(classes[places], kind="stable")]
    return ordered


def _sorted_members(starts: Array, sizes: Array, scores: Array) -> Array:
    """Places [classes, most] of the boxes of classes, best first, then any others."""
    places = starts[:, None] + np.arange(int(sizes.max()))
    is_other = places >= (starts + sizes)[:, None]
    places[is_other] = 0
    values = -scores[places]
    values[is_other] = np.nan  # sorts behind all, and the order of equal ones stays
    order = np.argsort(values, axis=1, kind="stable")
    members: Array = np.take_along_axis(places, order, axis=1)
    return members


def _keep_side_by_side(
    members: Array, sizes: Array, low: Array, high: Array, limit: int, threshold: float
) -> Array:
    """Places of the boxes that are kept of classes of a block at most, class by class."""
    lower, upper = low[:, members], high[:, members]
    boxes = (lower, upper, np.prod(upper - lower, axis=0))
    words = _words(_overlap_mask(boxes, boxes, threshold))
    taken = np.zeros(len(members), np.uint64)
    free = np.arange(members.shape[1]) < sizes[:, None]
    for i in range(members.shape[1]):
        free[:, i] &= taken >> np.uint64(i) & np.uint64(1) == 0
        taken |= np.where(free[:, i], words[:, i], np.uint64(0))
    free &= np.cumsum(free, axis=1) <= limit
    kept: Array = members[free]
    return kept


def _candidates(scores: Array, least: Array | None) -> tuple[Array, Array]:
    """Class and box of each of scores [classes, n] that is above `least`, class by class."""
    count = scores.shape[1]
    if least is None or not least.size:
        places = np.arange(scores.size)
    else:
        places = np.flatnonzero(scores > least.reshape(-1)[0])  # of two axes: ten times as long
    classes, boxes = np.divmod(places, max(count, 1))
    return classes, boxes


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
            classes, places = _candidates(scores[n], least)
            if not classes.size:
                continue
            corners = corners_of(boxes[n, places], centered=centered)
            kept = _keep_of_classes(classes, corners, scores[n, classes, places], most, threshold)
            selected = np.empty((kept.size, 3), np.int64)
            selected[:, 0], selected[:, 1], selected[:, 2] = n, classes[kept], places[kept]
            rows.append(selected)
        return np.concatenate(rows) if rows else np.empty((0, 3), np.int64)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("NonMaxSuppression", since=(10, 11))(_non_max_suppression),
)

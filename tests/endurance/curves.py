"""Whether a curve of samples rises: a line through its second half, and how far it may climb."""

from __future__ import annotations

from typing import TYPE_CHECKING

from endurance.samples import CURVES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BOUNDS: Mapping[str, tuple[float, float]] = {
    "threads": (1.0, 0.0),
    "descriptors": (1.0, 0.0),
    "maps": (4.0, 0.01),
    "files": (0.5, 0.0),
    "resident": (2048.0, 0.01),
    "objects": (100.0, 0.002),
}
"""By how much a line through the second half of a curve may climb from its beginning to its end:
so much, and this part of the curve's mean. `resident` is in kilobytes. The first half is for
caches that fill up, and for malloc to find its size."""


def climb(values: Sequence[float]) -> float:
    """How far the line of least squares through `values` climbs from the first to the last."""
    count = len(values)
    if count < 2:
        return 0.0
    middle, mean = (count - 1) / 2, sum(values) / count
    slope = sum((i - middle) * (v - mean) for i, v in enumerate(values)) / sum(
        (i - middle) ** 2 for i in range(count)
    )
    return slope * (count - 1)


def rising(rows: Sequence[Mapping[str, float]]) -> dict[str, str]:
    """By curve, how it rises and what is allowed; empty where all are flat."""
    found = {}
    for name in CURVES:
        values = [row[name] for row in rows][len(rows) // 2 :]
        fixed, part = BOUNDS[name]
        allowed = fixed + part * sum(values) / len(values)
        climbs = climb(values)
        if climbs > allowed:
            found[name] = (
                f"climbs by {climbs:.1f} in the second half, from {values[0]} to {values[-1]}; "
                f"{allowed:.1f} is the bound"
            )
    return found

"""Values quantised to uint8 by their own range, as whole numbers in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eps.cpu.arrays import Array

_MOST_STEPS = np.float32(255)
_LEAST_RANGE = np.float32(1e-28)
"""For a row of zeros, whose steps are 0 by any scale."""


def quantize_dynamically(x: Array) -> tuple[Array, Array]:
    """`x` as DynamicQuantizeLinear-11 sees it: (q - zero point) in float32, and the scale."""
    rows = x.reshape(1, -1)
    steps = np.empty(rows.shape, np.float32)
    scale = RowQuantizer(1).quantize(rows, steps)
    return steps.reshape(x.shape), scale.reshape(())


class RowQuantizer:
    """Quantises rows, each by its own range, again and again in the same memory."""

    def __init__(self, count: int) -> None:
        """Make room for scales and zero points of `count` rows."""
        self._low = np.empty((count, 1), np.float32)
        self._scale = np.empty((count, 1), np.float32)

    def quantize(self, rows: Array, steps: Array) -> Array:
        """(q - zero point) of [count, n] into `steps`; the scales [count, 1].

        No step is below the lowest value's, since division and rounding keep order: only the upper
        end is cut, where both ends were rounded outwards.
        """
        low, scale = self._low, self._scale
        np.minimum.reduce(rows, 1, out=low, keepdims=True, initial=0)
        np.maximum.reduce(rows, 1, out=scale, keepdims=True, initial=_LEAST_RANGE)
        np.subtract(scale, low, scale)
        np.divide(scale, _MOST_STEPS, scale)
        np.divide(low, scale, low)
        np.rint(low, low)  # the zero point, negated
        np.add(low, _MOST_STEPS, low)
        np.divide(rows, scale, steps)
        np.rint(steps, steps)
        np.minimum(steps, low, out=steps)
        return scale

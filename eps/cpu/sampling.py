"""Values of [C, *space] at fractional places: GridSample, DeformConv."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array

CUBIC_A = -0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """How places between elements and outside of the tensor get a value.

    Attributes:
        mode: "nearest", "linear" or "cubic".
        padding: "zeros", "border" or "reflection".
        corners: Reflect at the centres of the outer elements, not at their edges.
    """

    mode: str = "linear"
    padding: str = "zeros"
    corners: bool = False

    def sample(self, x: Array, places: Sequence[Array]) -> Array:
        """Values [C, P] of x [C, *space] at `places`, one array [P] for each axis of space."""
        space = x.shape[1:]
        flat = x.reshape(x.shape[0], -1)
        taps = [
            self._taps(self._inside(at, size), size) for at, size in zip(places, space, strict=True)
        ]
        result = np.zeros((x.shape[0], places[0].size), x.dtype)
        for chosen in itertools.product(*(range(len(axis[0])) for axis in taps)):
            index = np.zeros(places[0].size, np.intp)
            weight = np.ones(places[0].size, x.dtype)
            for d, tap in enumerate(chosen):
                index *= space[d]
                index += taps[d][0][tap]
                weight *= taps[d][1][tap]
            values = np.take(flat, index, 1)
            values *= weight
            result += values
        return result

    def _edges(self, size: int) -> tuple[float, float]:
        return (0.0, size - 1.0) if self.corners else (-0.5, size - 0.5)

    def _inside(self, at: Array, size: int) -> Array:
        """Places beyond the edges mirrored, where the padding is reflection.

        At a border the neighbours are moved, not the place: PyTorch and ONNX Runtime do so,
        and for "cubic" it makes a difference.
        """
        if self.mode == "nearest":
            at = np.rint(at)
        if self.padding != "reflection":
            return at
        low, high = self._edges(size)
        return np.where((at < low) | (at > high), _reflect(at, low, high), at)

    def _taps(self, at: Array, size: int) -> tuple[list[Array], list[Array]]:
        """Indices and weights of the neighbours along one axis; none lies outside."""
        base = np.floor(at)
        ratio = at - base
        if self.mode == "nearest":
            places, weights = [np.rint(at)], [np.ones_like(at)]
        elif self.mode == "linear":
            places, weights = [base, base + 1], [1 - ratio, ratio]
        else:
            places = [base + offset for offset in range(-1, 3)]
            weights = [_cubic(np.abs(ratio - offset)) for offset in range(-1, 3)]
        indices = []
        for i, place in enumerate(places):
            if self.padding == "zeros":
                inside = (place >= 0) & (place <= size - 1)
                weights[i] = np.where(inside, weights[i], 0)
            elif self.padding == "reflection":
                place = _reflect(place, *self._edges(size))
            # NaN and infinity have no neighbours; they read element 0 with their weight.
            place = np.clip(np.nan_to_num(place), 0, size - 1)
            indices.append(place.astype(np.intp))
        return indices, weights


def _reflect(at: Array, low: float, high: float) -> Array:
    """Places mirrored at `low` and `high` until they lie between."""
    span = high - low
    if span <= 0:
        return np.full_like(at, low)
    distance = np.abs(at - low)
    turns = np.floor(distance / span)
    rest = distance - turns * span
    return np.where(turns % 2 == 0, low + rest, high - rest)


def _cubic(distance: Array) -> Array:
    """Keys' kernel with a = -0.75, as PyTorch and ONNX GridSample have it."""
    a = CUBIC_A
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, far)

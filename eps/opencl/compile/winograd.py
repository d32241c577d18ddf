"""Winograd's minimal filtering of 3 by 3 windows: its matrices, and where it pays.

F(m x m, 3 x 3) computes a tile of m by m output pixels as A' [(G g G') * (B' d B)] A (Lavin and
Gray, "Fast Algorithms for Convolutional Neural Networks", 2016): the tile's input d and the weights
g are evaluated at points, multiplied there point by point, and interpolated. For each pair of
channels that is (m + 2)^2 multiplications instead of 9 m^2: 2.25 and 4 times fewer for m = 2 and 4.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, np.dtype[Any]]

WINDOW = 3
POINTS: Mapping[int, tuple[float, ...]] = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.625, -0.625, 1.5, -1.5)}
"""Evaluation points other than infinity, by output pixels along an edge of a tile.

Sums of 64 to 256 channels err with these by 2 to 3e-6 of the largest result, a third of what they
do with the usual 0, 1, -1, 2, -2. Their powers are exact in float32.
"""

BYTES_PER_TILE, MOST_BYTES = 192 << 10, 16 << 20
"""Of transformed weights of F(4 x 4, 3 x 3), which take 4 times the room of plain ones.

With more weights for each tile that uses them a run waits for memory, and F(2 x 2, 3 x 3) with 1.8
times the room of plain ones is as fast; the whole is also read out of the payload in each start.
"""

WEIGHT_COST, TRANSFORM_COST, LAUNCH_COST = 15, 35, 1_000_000
"""Of an element of the weights, of one of what is evaluated or interpolated, and of a second
kernel, in multiplications and additions of a contraction: measured on two cores with AVX2."""
MARGIN = 0.9
"""Of the cost of the plain convolution, which another one must be under."""


@dataclass(frozen=True, slots=True)
class Transform:
    """The matrices of F(m x m, 3 x 3), with n = m + 2.

    Attributes:
        image: B' [n, n], of a tile's input.
        weights: G [n, 3].
        result: A' [m, n], of a tile's products.
    """

    image: Array
    weights: Array
    result: Array

    @property
    def outputs(self) -> int:
        """Output pixels along an edge of a tile."""
        return len(self.result)

    @property
    def points(self) -> int:
        """Products of a tile and channel."""
        return len(self.image) ** 2

    def weights_at_points(self, weights: Array) -> Array:
        """[O, C, 3, 3] as [points, C, O], computed in float64."""
        outs, depth = weights.shape[:2]
        both = np.kron(self.weights, self.weights)
        transformed = np.empty((self.points, depth, outs), np.float32)
        for channel in range(depth):  # one by one in the cache: all at once takes twice as long
            transformed[:, channel] = both @ weights[:, channel].reshape(outs, -1).T
        return transformed


def transform_of(outputs: int) -> Transform:
    """The matrices for tiles of `outputs` by `outputs` pixels, a key of `POINTS`."""
    points = POINTS[outputs]
    size = len(points) + 1
    image = np.zeros((size, size))
    weights, result = np.zeros((size, WINDOW)), np.zeros((outputs, size))
    for i, point in enumerate(points):
        others = [p for p in points if p != point]
        weights[i] = point ** np.arange(WINDOW) / prod(point - p for p in others)
        image[i, :-1] = np.poly(others)[::-1]
        result[:, i] = point ** np.arange(outputs)
    weights[-1, -1] = result[-1, -1] = 1
    image[-1] = np.poly(points)[::-1]
    return Transform(image, weights, result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Sizes of a convolution of 3 by 3 windows: images, output rows and columns, channels."""

    images: int
    rows: int
    columns: int
    depth: int
    width: int

    def grid(self, outputs: int) -> tuple[int, int, int]:
        """Images, and tiles down and across, the last ones moved back to end at the edge."""
        return self.images, -(-self.rows // outputs), -(-self.columns // outputs)


def choose_outputs(extent: Extent) -> int | None:
    """Output pixels along an edge of the tile that costs least; None for no transform at all."""
    costs = {m: _cost(extent, m) for m in POINTS if _fits(extent, m)}
    best = min(costs, key=costs.__getitem__, default=None)
    if best is None or costs[best] > MARGIN * _plain_cost(extent):
        return None
    return best


def _fits(extent: Extent, outputs: int) -> bool:
    weights = 4 * (outputs + 2) ** 2 * extent.depth * extent.width
    most = min(MOST_BYTES, BYTES_PER_TILE * prod(extent.grid(outputs)))
    small = outputs == min(POINTS) or weights <= most
    return small and min(extent.rows, extent.columns) >= outputs


def _cost(extent: Extent, outputs: int) -> float:
    points, tiles = (outputs + 2) ** 2, prod(extent.grid(outputs))
    products = 2 * tiles * extent.depth * extent.width
    moved = TRANSFORM_COST * tiles * (extent.depth + extent.width)
    read = WEIGHT_COST * extent.depth * extent.width
    return points * (products + moved + read) + LAUNCH_COST


def _plain_cost(extent: Extent) -> float:
    pixels = extent.images * extent.rows * extent.columns
    taps = WINDOW * WINDOW * extent.depth * extent.width
    return taps * (2 * pixels + WEIGHT_COST)

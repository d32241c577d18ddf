"""Separable interpolation along one axis: where samples come from, and with what weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from eps.cpu.arrays import Array, Empty

MATRIX_LIMIT = 1 << 16
"""Up to this many (input x output) positions an axis is resized by one matrix product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisResize:
    """How one axis is resized.

    Attributes:
        size: Elements there are.
        length: Elements there will be.
        scale: length / size before rounding, as the model gives it.
        roi: Start and end of the region of interest, for tf_crop_and_resize.
    """

    size: int
    length: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpolation:
    """The attributes of ONNX Resize.

    Attributes:
        nearest_mode: "simple" is what versions before 11 do.
    """

    mode: str = "nearest"
    transformation: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False

    def resize(self, x: Array, at: int, axis: AxisResize, empty: Empty = np.empty) -> Array:
        """`x`, float32 or float64 unless the mode is nearest, resized along axis `at`."""
        places = source_places(self.transformation, axis)
        if self.mode == "nearest":
            shape = (*x.shape[:at], axis.length, *x.shape[at + 1 :])
            result = empty(shape, x.dtype)
            # Modes other than "raise" write to `out` without a copy; all indices are inside.
            return np.take(x, self._nearest(places, axis), at, out=result, mode="clip")
        indices, weights = self._taps(places, axis)
        if self.exclude_outside:
            weights = np.where((indices >= 0) & (indices < axis.size), weights, 0)
            weights = weights / weights.sum(1, keepdims=True)
        return _weigh_taps(x, at, np.clip(indices, 0, axis.size - 1), weights)

    def _nearest(self, places: Array, axis: AxisResize) -> Array:
        half = np.float32(0.5)
        if self.nearest_mode == "round_prefer_floor":
            chosen = np.ceil(places - half)
        elif self.nearest_mode == "round_prefer_ceil":
            chosen = np.floor(places + half)
        elif self.nearest_mode == "ceil" or (self.nearest_mode == "simple" and axis.scale < 1):
            chosen = np.ceil(places)
        elif self.nearest_mode in ("floor", "simple"):
            chosen = np.floor(places)
        else:
            raise ValueError(f"nearest_mode '{self.nearest_mode}' is not known")
        return np.clip(chosen, 0, axis.size - 1).astype(np.intp)

    def _taps(self, places: Array, axis: AxisResize) -> tuple[Array, Array]:
        """Indices [length, taps], which may lie outside, and their weights."""
        base = np.floor(places)
        ratio = (places - base)[:, None].astype(np.float64)
        shrink = min(float(axis.scale), 1.0) if self.antialias else 1.0
        radius = {"linear": 1, "cubic": 2}[self.mode]
        first = int(np.floor(-radius / shrink)) + 1
        offsets = np.arange(first, 2 - first)
        distance = np.abs(offsets - ratio) * shrink
        weights = np.maximum(1 - distance, 0) if radius == 1 else self._cubic(distance)
        if self.antialias:
            weights = weights / weights.sum(1, keepdims=True)
        return base.astype(np.int64)[:, None] + offsets, weights

    def _cubic(self, distance: Array) -> Array:
        """Keys' cubic kernel with parameter a."""
        a = self.cubic_a
        near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def source_places(transformation: str, axis: AxisResize) -> Array:
    """For every new element its place among the old ones.

    Computed in float32 as ONNX Runtime does, so that places between two elements fall on the
    same side. Where corners are aligned the new length is taken before rounding, as in
    onnx.reference.

    Raises:
        ValueError: The transformation is not one of ONNX's.
    """
    x = np.arange(axis.length, dtype=np.float32)
    scale, size, length = np.float32(axis.scale), np.float32(axis.size), axis.length
    exact = scale * size
    half, one = np.float32(0.5), np.float32(1)
    if transformation == "half_pixel":
        return (x + half) / scale - half
    if transformation == "asymmetric":
        return x / scale
    if transformation == "pytorch_half_pixel":
        return (x + half) / scale - half if length > 1 else np.zeros_like(x)
    if transformation == "align_corners":
        return x * (size - one) / (exact - one) if exact != 1 else np.zeros_like(x)
    if transformation == "tf_half_pixel_for_nn":
        return (x + half) / scale
    if transformation == "half_pixel_symmetric":
        adjustment = np.float32(length) / (scale * size)
        offset = size / np.float32(2) * (one - adjustment)
        return np.asarray(offset + (x + half) / scale - half)
    if transformation == "tf_crop_and_resize":
        start, end = (np.float32(edge) for edge in axis.roi)
        if exact == 1:
            return np.full_like(x, half * (start + end) * (size - one))
        return start * (size - one) + x * (end - start) * (size - one) / (exact - one)
    raise ValueError(f"coordinate_transformation_mode '{transformation}' is not known")


def _weigh_taps(x: Array, at: int, indices: Array, weights: Array) -> Array:
    """Sum of taps [length, taps] along axis `at`; by a matrix where that is small."""
    length, taps = indices.shape
    size = x.shape[at]
    weights = weights.astype(x.dtype)
    if size * length <= MATRIX_LIMIT:
        matrix = np.zeros((length, size), x.dtype)
        np.add.at(matrix, (np.arange(length)[:, None], indices), weights)
        if at == x.ndim - 1:
            return np.asarray(x @ matrix.T)
        shape = (*x.shape[:at], length, *x.shape[at + 1 :])
        rows = x.reshape(*x.shape[: at + 1], -1)
        return np.asarray(np.matmul(matrix, rows)).reshape(shape)
    column = (-1,) + (1,) * (x.ndim - at - 1)
    result = np.take(x, indices[:, 0], at) * weights[:, 0].reshape(column)
    for tap in range(1, taps):
        result += np.take(x, indices[:, tap], at) * weights[:, tap].reshape(column)
    return np.asarray(result)

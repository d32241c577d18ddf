"""AffineGrid, GridSample and DeformConv: values at fractional places of [C, *space]."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation, computing_wide
from eps.cpu.kernels.conv import add_bias
from eps.cpu.kernels.shape import integers
from eps.cpu.windows import AxisWindow, WindowAttributes
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

CUBIC_A = -0.75
_MODES: Mapping[str, str] = MappingProxyType(
    {
        "bilinear": "linear",
        "linear": "linear",
        "bicubic": "cubic",
        "cubic": "cubic",
        "nearest": "nearest",
    }
)


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
            self._taps(self._reflect(at, size), size)
            for at, size in zip(places, space, strict=True)
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

    def _reflect(self, at: Array, size: int) -> Array:
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
    """Places mirrored at `low` and `high` until they are between."""
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


def _grid_sample(info: KernelInfo) -> KernelFn:
    """ONNX GridSample; the grid's last axis counts axes of space from the last one."""
    mode, padding = info.attr("mode", "linear"), info.attr("padding_mode", "zeros")
    corners = bool(info.attr("align_corners", 0))
    if mode not in _MODES or padding not in ("zeros", "border", "reflection"):
        raise ValueError(f"GridSample: mode '{mode}' with padding_mode '{padding}'")
    sampler = Sampler(mode=_MODES[mode], padding=padding, corners=corners)

    def grid_sample(x: Array, grid: Array) -> Array:
        space = x.shape[2:]
        if grid.shape[-1] != len(space) or grid.shape[0] != x.shape[0]:
            raise ValueError(f"grid of shape {grid.shape} for X of shape {x.shape}")
        shape = (*x.shape[:2], *grid.shape[1:-1])
        result = np.empty(check_allocation(shape, x.dtype), x.dtype)
        for n in range(x.shape[0]):
            places = []
            for d, size in enumerate(space):
                at = grid[n, ..., len(space) - 1 - d].reshape(-1)
                scaled = (at + 1) / 2 * (size - 1) if corners else ((at + 1) * size - 1) / 2
                places.append(scaled)
            result[n] = sampler.sample(x[n], places).reshape(shape[1:])
        return result

    return computing_wide(info, grid_sample)


def _affine_grid(info: KernelInfo) -> KernelFn:
    """ONNX AffineGrid-20: theta [N, r, r + 1] applied to places in [-1, 1]."""
    corners = bool(info.attr("align_corners", 0))

    def affine_grid(theta: Array, size: Array) -> Array:
        space = integers(size)[2:]
        check_allocation((theta.shape[0], *space, len(space)), theta.dtype)
        axes = []
        for count in space:
            steps = np.arange(count, dtype=theta.dtype)
            if corners:
                axes.append(steps * 2 / max(count - 1, 1) - 1)
            else:
                axes.append((steps * 2 + 1) / count - 1)
        mesh = np.meshgrid(*axes, indexing="ij")[::-1]
        ones = np.ones(tuple(space), theta.dtype)
        points = np.stack([*mesh, ones], -1).astype(theta.dtype)
        flat = points.reshape(-1, len(space) + 1)
        result = flat @ theta.swapaxes(1, 2)
        return np.asarray(result).reshape(theta.shape[0], *space, len(space))

    return computing_wide(info, affine_grid)


def _tap_places(axes: Sequence[AxisWindow]) -> list[Array]:
    """For each axis the index of every tap of every window: [*taps, *counts]."""
    rank = len(axes)
    places = []
    for d, axis in enumerate(axes):
        taps = np.arange(axis.taps) * axis.spread
        starts = np.arange(axis.count) * axis.step - axis.before
        shape = [1] * (2 * rank)
        shape[d] = axis.taps
        one = taps.reshape(shape)
        shape[d], shape[rank + d] = 1, axis.count
        places.append(one + starts.reshape(shape))
    return places


def _deform_conv(info: KernelInfo) -> KernelFn:
    """ONNX DeformConv: a convolution whose taps are moved by offsets, with linear sampling."""
    attributes = WindowAttributes.of(info)
    group, offset_group = info.attr("group", 1), info.attr("offset_group", 1)
    sampler = Sampler(mode="linear", padding="zeros")

    def run(
        x: Array,
        w: Array,
        offset: Array,
        bias: Array | None = None,
        mask: Array | None = None,
    ) -> Array:
        axes = attributes.axes(x.shape[2:], w.shape[2:])
        taps = tuple(a.taps for a in axes)
        counts = tuple(a.count for a in axes)
        batch, channels = x.shape[:2]
        if channels % offset_group or w.shape[1] * group != channels or w.shape[0] % group:
            raise ValueError(
                f"X {x.shape}, W {w.shape}, group {group} and offset_group {offset_group} "
                "do not fit"
            )
        shifts = offset.reshape(batch, offset_group, *taps, len(axes), *counts)
        shifts = np.moveaxis(shifts, 2 + len(axes), 2)  # [N, groups, axis, *taps, *counts]
        scale = None if mask is None else mask.reshape(batch, offset_group, 1, -1)
        base = _tap_places(axes)
        each = channels // offset_group
        columns = np.empty((batch, channels, math.prod(taps) * math.prod(counts)), x.dtype)
        for n in range(batch):
            for g in range(offset_group):
                part = slice(g * each, (g + 1) * each)
                places = [
                    (base[d] + shifts[n, g, d]).reshape(-1).astype(x.dtype)
                    for d in range(len(axes))
                ]
                columns[n, part] = sampler.sample(x[n, part], places)
                if scale is not None:
                    columns[n, part] *= scale[n, g]
        depth = w.shape[1] * math.prod(taps)
        filters = w.reshape(group, -1, depth)
        result = filters @ columns.reshape(batch, group, depth, -1)
        return add_bias(result.reshape(batch, w.shape[0], *counts), bias)

    return computing_wide(info, run)


KERNELS: tuple[KernelDef, ...] = (
    kernel("GridSample", since=(16, 22))(_grid_sample),
    kernel("AffineGrid", since=(20, 20))(_affine_grid),
    kernel("DeformConv", since=(19, 22))(_deform_conv),
)

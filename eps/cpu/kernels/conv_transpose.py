"""ConvTranspose: every element spread over the window it stands for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation, computing_wide, on_last_axes
from eps.cpu.kernels.conv import add_bias
from eps.cpu.shared_products import multiply
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


class _Geometry:
    """Attributes of a node, and the sizes that follow from them."""

    def __init__(self, info: KernelInfo) -> None:
        self.strides = info.attr("strides")
        self.dilations = info.attr("dilations")
        self.pads = info.attr("pads")
        self.extra = info.attr("output_padding")
        self.output_shape = info.attr("output_shape")
        self.auto_pad = info.attr("auto_pad", "NOTSET")

    def steps(self, rank: int) -> tuple[list[int], list[int]]:
        """Strides and dilations of the spatial axes, in this order."""
        return self.strides or [1] * rank, self.dilations or [1] * rank

    def cut(self, space: Sequence[int], kernel: Sequence[int]) -> list[tuple[int, int]]:
        """For each axis the first element of the full result that is kept, and how many."""
        rank = len(space)
        steps, spreads = self.steps(rank)
        extra = self.extra or [0] * rank
        pads = self.pads or [0] * (2 * rank)
        cuts = []
        for d in range(rank):
            full = steps[d] * (space[d] - 1) + extra[d] + (kernel[d] - 1) * spreads[d] + 1
            before, after = pads[d], pads[rank + d]
            if self.output_shape or self.auto_pad.startswith("SAME"):
                length = self.output_shape[d - rank] if self.output_shape else space[d] * steps[d]
                total = max(full - length, 0)
                upper = self.auto_pad == "SAME_UPPER"
                before = total // 2 if upper else total - total // 2
                cuts.append((before, length))
                continue
            if self.auto_pad == "VALID":
                before = after = 0
            cuts.append((before, full - before - after))
        return cuts


def _spread(parts: Array, result: Array, steps: Sequence[int], spreads: Sequence[int]) -> None:
    """Add parts [N, M, *kernel, *space] to the full result where they belong."""
    rank = len(steps)
    kernel, space = parts.shape[2 : 2 + rank], parts.shape[2 + rank :]
    for tap in np.ndindex(*kernel):
        where = tuple(
            slice(t * spreads[d], t * spreads[d] + (space[d] - 1) * steps[d] + 1, steps[d])
            for d, t in enumerate(tap)
        )
        result[(slice(None), slice(None), *where)] += parts[(slice(None), slice(None), *tap)]


def _conv_transpose(info: KernelInfo) -> KernelFn:
    """ONNX ConvTranspose; w is [C, M / group, *kernel]."""
    geometry, group = _Geometry(info), info.attr("group", 1)

    def run(x: Array, w: Array, bias: Array | None = None) -> Array:
        rank = x.ndim - 2
        if w.ndim != x.ndim or w.shape[0] != x.shape[1] or x.shape[1] % group:
            raise ValueError(f"X of shape {x.shape} and W of shape {w.shape} do not fit")
        space, kernel_shape = x.shape[2:], w.shape[2:]
        each = x.shape[1] // group
        rows = w.reshape(group, each, math.prod(w.shape[1:])).swapaxes(1, 2)
        filters = w.shape[1] * group
        parts = info.empty((x.shape[0], filters, *kernel_shape, *space), np.result_type(x, w))
        points = math.prod(space)
        columns = x.reshape(x.shape[0], group, each, points)
        target = parts.reshape(x.shape[0], group, rows.shape[1], points)
        multiply(rows, columns, target)
        steps, spreads = geometry.steps(rank)
        cut = geometry.cut(space, kernel_shape)
        full = [
            max(steps[d] * (space[d] - 1) + (kernel_shape[d] - 1) * spreads[d] + 1, sum(cut[d]))
            for d in range(rank)
        ]
        shape = check_allocation((x.shape[0], filters, *full), parts.dtype)
        result = info.empty(shape, parts.dtype)
        result.fill(0)
        if x.size:
            _spread(parts, result, steps, spreads)
        inner = on_last_axes([slice(start, start + size) for start, size in cut])
        return add_bias(result[inner], bias)

    return computing_wide(info, run)


KERNELS: tuple[KernelDef, ...] = (kernel("ConvTranspose", since=(1, 22))(_conv_transpose),)

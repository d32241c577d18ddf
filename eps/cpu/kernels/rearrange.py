"""Operators that move elements between depth, space and columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def _mode(info: KernelInfo) -> str:
    mode: str = info.attr("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise ValueError(f"{info.op_type}: mode is '{mode}', expected 'DCR' or 'CRD'")
    return mode


def _depth_to_space(info: KernelInfo) -> KernelFn:
    block, mode = info.attr("blocksize"), _mode(info)

    def depth_to_space(x: Array) -> Array:
        n, c, h, w = x.shape
        depth = c // (block * block)
        if mode == "DCR":
            parts = x.reshape(n, block, block, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
        else:
            parts = x.reshape(n, depth, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
        return parts.reshape(n, depth, h * block, w * block)

    return depth_to_space


def _space_to_depth(info: KernelInfo) -> KernelFn:
    block, mode = info.attr("blocksize"), _mode(info)

    def space_to_depth(x: Array) -> Array:
        n, c, h, w = x.shape
        parts = x.reshape(n, c, h // block, block, w // block, block)
        order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        return parts.transpose(order).reshape(n, c * block * block, h // block, w // block)

    return space_to_depth


def _col2im(info: KernelInfo) -> KernelFn:
    """ONNX Col2Im-18: columns summed into the image they were cut from."""
    strides, dilations, pads = info.attr("strides"), info.attr("dilations"), info.attr("pads")

    def col2im(columns: Array, image_shape: Array, block_shape: Array) -> Array:
        image, block = integers(image_shape), integers(block_shape)
        rank = len(image)
        step, spread = strides or [1] * rank, dilations or [1] * rank
        border = pads or [0] * (2 * rank)
        full = [image[d] + border[d] + border[rank + d] for d in range(rank)]
        windows = [(full[d] - (block[d] - 1) * spread[d] - 1) // step[d] + 1 for d in range(rank)]
        batch, channels = columns.shape[0], columns.shape[1] // math.prod(block)
        parts = columns.reshape(batch, channels, *block, *windows)
        whole = (slice(None), slice(None))
        result = np.zeros(check_allocation((batch, channels, *full), columns.dtype), columns.dtype)
        for tap in np.ndindex(*block):
            where = tuple(
                slice(tap[d] * spread[d], tap[d] * spread[d] + windows[d] * step[d], step[d])
                for d in range(rank)
            )
            result[whole + where] += parts[whole + tap]
        inner = tuple(slice(border[d], border[d] + image[d]) for d in range(rank))
        return result[whole + inner]

    return col2im


KERNELS: tuple[KernelDef, ...] = (
    kernel("DepthToSpace", since=(1, 28))(_depth_to_space),
    kernel("SpaceToDepth", since=(1, 28))(_space_to_depth),
    kernel("Col2Im", since=(18, 18))(_col2im),
)

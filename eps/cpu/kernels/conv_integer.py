"""Kernels of the integer convolutions ConvInteger and QLinearConv."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import SIZES
from eps.cpu.convolution import convolution, convolve
from eps.cpu.kernels.conv import add_bias
from eps.cpu.kernels.matmul_integer import Weights
from eps.cpu.kernels.quantize import requantize
from eps.cpu.products import FLOAT32_EXACT, largest_shifted, subtract_zero_point, to_int32
from eps.cpu.windows import WindowAttributes
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def by_filter(values: Array, rank: int) -> Array:
    """One value for each filter along axis 0 of the weights; a single one as it is."""
    return values.reshape((-1,) + (1,) * (rank - 1)) if values.size != 1 else values.reshape(())


def by_channel(values: Array, rank: int) -> Array:
    """One value for each filter along axis 1 of the result; a single one as it is."""
    return values.reshape((-1,) + (1,) * (rank - 2)) if values.size != 1 else values.reshape(())


def integer_convolution(info: KernelInfo, at: int, zero_at: int) -> Callable[..., Array]:
    """A function (x, w, x_zero, w_zero) to the exact convolution: whole floats, or int32.

    Padding stands for the zero point, that is for nothing once it is subtracted.

    Args:
        info: The node.
        at: Which of its inputs w is.
        zero_at: Which one is w's zero point.
    """
    attributes, group = WindowAttributes.of(info), info.attr("group", 1)
    windows, empty = lru_cache(maxsize=SIZES)(attributes.axes), info.empty
    fixed, fixed_zero = info.constant(at), info.constant(zero_at)
    has_zero_point = zero_at < info.n_inputs and bool(info.node.inputs[zero_at])
    prepared = None
    if fixed is not None and not (has_zero_point and fixed_zero is None):
        prepared = _filters(fixed, fixed_zero)
    in_float32 = convolution(
        attributes, group, empty, None if prepared is None else prepared.values
    )

    def run(x: Array, w: Array, x_zero: Array | None, w_zero: Array | None) -> Array:
        if x.ndim < 3 or x.ndim != w.ndim:
            raise ValueError(f"x of shape {x.shape} and w of shape {w.shape} do not fit")
        filters = prepared or _filters(w, w_zero)
        bound = largest_shifted(x, x_zero) * filters.bound
        left = subtract_zero_point(x, x_zero, empty)
        depth = math.prod(w.shape[1:])
        each = depth // max(w.shape[1], 1)
        part = max(FLOAT32_EXACT // max(bound * each, 1), 1)
        if part >= w.shape[1] and left.dtype == np.float32:
            return in_float32(left, filters.values)
        axes = windows(x.shape[2:], w.shape[2:])
        if group > 1 or bound * each > FLOAT32_EXACT // 2:
            wide = left.astype(np.float64), filters.values.astype(np.float64)
            return to_int32(convolve(*wide, axes, group, empty))
        total = None
        for start in range(0, w.shape[1], part):  # float32 holds the sums of so many channels
            channels = slice(start, start + part)
            some = convolve(left[:, channels], filters.values[:, channels], axes, 1, empty)
            whole = some.astype(np.int32)
            total = whole if total is None else np.add(total, whole, out=total)
        assert total is not None
        return total

    return run


def _filters(w: Array, zero: Array | None) -> Weights:
    return Weights.of(w, None if zero is None else by_filter(zero, w.ndim))


def _conv_integer(info: KernelInfo) -> KernelFn:
    """ONNX ConvInteger-10."""
    convolution = integer_convolution(info, 1, 3)
    return lambda x, w, x_zero=None, w_zero=None: to_int32(convolution(x, w, x_zero, w_zero))


def qlinear_conv(info: KernelInfo) -> KernelFn:
    """ONNX QLinearConv-10; the bias is in units of x_scale * w_scale."""
    convolution = integer_convolution(info, 3, 5)

    def run(x: Array, x_scale: Array, x_zero: Array, w: Array, *rest: Array) -> Array:
        w_scale, w_zero, y_scale, y_zero, *bias = rest
        total = convolution(x, w, x_zero, w_zero)
        if bias and bias[0] is not None:
            total = add_bias(to_int32(total), bias[0])
        factor = x_scale * by_channel(w_scale, x.ndim) / y_scale
        return requantize(total, factor, y_zero)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("ConvInteger", since=(10, 10))(_conv_integer),
    kernel("QLinearConv", since=(10, 10))(qlinear_conv),
)

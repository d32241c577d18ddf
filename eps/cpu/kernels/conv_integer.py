"""ConvInteger and QLinearConv."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.convolution import convolve
from eps.cpu.exact_integers import exact_dtype, to_int32
from eps.cpu.kernels.conv import add_bias
from eps.cpu.kernels.matmul_integer import shifted
from eps.cpu.kernels.quantize import quantized
from eps.cpu.windows import WindowAttributes
from ort_lite.kernel_registry import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.kernel_registry import KernelFn, KernelInfo


def by_filter(values: Array, rank: int) -> Array:
    """One value for each filter along axis 0 of the weights; a single one as it is."""
    return values.reshape((-1,) + (1,) * (rank - 1)) if values.size > 1 else values.reshape(())


def by_channel(values: Array, rank: int) -> Array:
    """One value for each filter along axis 1 of the result; a single one as it is."""
    return values.reshape((-1,) + (1,) * (rank - 2)) if values.size > 1 else values.reshape(())


def integer_convolution(info: KernelInfo) -> Callable[..., Array]:
    """A function (x, w, x_zero, w_zero) to the exact convolution, as floats of whole numbers.

    Padding stands for the zero point, that is for nothing once it is subtracted.

    """
    attributes, group = WindowAttributes.of(info), info.attr("group", 1)

    def run(x: Array, w: Array, x_zero: Array | None, w_zero: Array | None) -> Array:
        left = shifted(x, x_zero)
        right = shifted(w, None if w_zero is None else by_filter(w_zero, w.ndim))
        kind = exact_dtype(right[0].size, left, right)
        axes = attributes.axes(x.shape[2:], w.shape[2:])
        return convolve(left.astype(kind), right.astype(kind), axes, group)

    return run


def _conv_integer(info: KernelInfo) -> KernelFn:
    """ONNX ConvInteger-10."""
    convolution = integer_convolution(info)
    return lambda x, w, x_zero=None, w_zero=None: to_int32(convolution(x, w, x_zero, w_zero))


def _qlinear_conv(info: KernelInfo) -> KernelFn:
    """ONNX QLinearConv-10; the bias is in units of x_scale * w_scale."""
    convolution = integer_convolution(info)

    def run(x: Array, x_scale: Array, x_zero: Array, w: Array, *rest: Array) -> Array:
        w_scale, w_zero, y_scale, y_zero, *bias = rest
        total = to_int32(convolution(x, w, x_zero, w_zero))
        total = add_bias(total, bias[0] if bias else None)
        factor = x_scale * by_channel(w_scale, x.ndim) / y_scale
        return quantized(total.astype(np.float32) * factor, y_zero, y_zero.dtype)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("ConvInteger", since=(10, 10))(_conv_integer),
    kernel("QLinearConv", since=(10, 10))(_qlinear_conv),
)

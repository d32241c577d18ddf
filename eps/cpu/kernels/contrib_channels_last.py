"""com.microsoft convolutions and pools that may have channels last, most of them quantised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.kernels.contrib_quant import requantize_with_zero
from eps.cpu.kernels.conv_integer import qlinear_conv
from eps.cpu.kernels.pool import along_axes, average_pool, lowest
from eps.cpu.windows import WindowAttributes
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"


def channels_first(x: Array) -> Array:
    """[N, *space, C] as [N, C, *space]."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def channels_last(x: Array) -> Array:
    """[N, C, *space] as [N, *space, C]."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def _nhwc_max_pool(info: KernelInfo) -> KernelFn:
    """MaxPool of [N, *space, C]: NhwcMaxPool-1."""
    attributes = WindowAttributes.of(info)

    def pool(x: Array) -> Array:
        rows = channels_first(x)
        axes = attributes.axes(rows.shape[2:])
        return channels_last(along_axes(rows, axes, np.maximum, lowest(rows), info.empty))

    return pool


def _qlinear_conv(info: KernelInfo) -> KernelFn:
    """ONNX QLinearConv with `channels_last`; filters stay [M, C / group, *kernel]."""
    convolution = qlinear_conv(info)
    if not info.attr("channels_last", 0):
        return convolution
    return lambda x, *rest: channels_last(convolution(channels_first(x), *rest))


def _qlinear_average_pool(info: KernelInfo) -> KernelFn:
    """AveragePool of steps less their zero point, as padding is 0: QLinearAveragePool-1."""
    pool, last = average_pool(info), bool(info.attr("channels_last", 0))

    def run(
        x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None
    ) -> Array:
        steps = (channels_first(x) if last else x).astype(np.float32)
        if x_zero is not None:
            steps -= x_zero.astype(np.float32)
        zero = np.zeros((), x.dtype) if y_zero is None else y_zero
        y = requantize_with_zero(pool(steps), np.asarray(y_scale / x_scale), zero)
        return channels_last(y) if last else y

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("NhwcMaxPool", domain=DOMAIN)(_nhwc_max_pool),
    kernel("QLinearConv", domain=DOMAIN)(_qlinear_conv),
    kernel("QLinearAveragePool", domain=DOMAIN)(_qlinear_average_pool),
)

"""Conv and its relatives on floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.cpu.arrays import computing_wide, widen_floats
from eps.cpu.convolution import convolution
from eps.cpu.windows import WindowAttributes
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def add_bias(y: Array, bias: Array | None) -> Array:
    """y + bias along axis 1, in place."""
    if bias is not None:
        y += bias.reshape((-1,) + (1,) * (y.ndim - 2))
    return y


def conv_kernel(info: KernelInfo) -> KernelFn:
    """ONNX Conv, all versions."""
    fixed = widen_floats(info.constant(1))
    convolve = convolution(WindowAttributes.of(info), info.attr("group", 1), info.empty, fixed)

    def conv(x: Array, w: Array, bias: Array | None = None) -> Array:
        return add_bias(convolve(x, w), bias)

    return computing_wide(info, conv)


KERNELS: tuple[KernelDef, ...] = (kernel("Conv", since=(1, 22))(conv_kernel),)

"""Conv and its relatives on floats."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.cpu.arrays import Array, computing_wide, is_narrow_float
from eps.cpu.convolution import banded_filters, convolve, convolve_banded, pays_banded
from eps.cpu.windows import WindowAttributes
from ort_lite.kernel_registry import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.windows import AxisWindow
    from ort_lite.kernel_registry import KernelFn, KernelInfo


SIZES = 8
"""Of so many sizes of input a node remembers how windows lie on them."""


def add_bias(y: Array, bias: Array | None) -> Array:
    """y + bias along axis 1, in place."""
    if bias is not None:
        y += bias.reshape((-1,) + (1,) * (y.ndim - 2))
    return y


def conv_kernel(info: KernelInfo) -> KernelFn:
    """ONNX Conv, all versions."""
    attributes = WindowAttributes.of(info)
    group = info.attr("group", 1)
    prepared = _prepared_bands(info, attributes)
    windows, empty = lru_cache(maxsize=SIZES)(attributes.axes), info.empty

    def conv(x: Array, w: Array, bias: Array | None = None) -> Array:
        if x.ndim < 3 or x.ndim != w.ndim:
            raise ValueError(f"X of shape {x.shape} and W of shape {w.shape} do not fit")
        axes = windows(x.shape[2:], w.shape[2:])
        if prepared is not None and prepared[1] == axes:
            return add_bias(convolve_banded(x, prepared[0], axes, empty), bias)
        return add_bias(convolve(x, w, axes, group, empty), bias)

    return computing_wide(info, conv)


def _prepared_bands(
    info: KernelInfo, attributes: WindowAttributes
) -> tuple[Array, tuple[AxisWindow, ...]] | None:
    """For a depthwise node of constant filters and known size: its filters as bands."""
    w, x_type = info.constant(1), info.input_type(0)
    shape = x_type.shape if isinstance(x_type, TensorType) else None
    if w is None or shape is None or len(shape) != 4 or is_narrow_float(w.dtype):
        return None
    sizes = [dim for dim in shape[1:] if isinstance(dim, int)]
    if len(sizes) != 3 or info.attr("group", 1) != sizes[0]:
        return None
    axes = attributes.axes(sizes[1:], w.shape[2:])
    if not pays_banded((1, *sizes), w, axes):
        return None
    return banded_filters(w, axes), axes


KERNELS: tuple[KernelDef, ...] = (kernel("Conv", since=(1, 22))(conv_kernel),)

"""QuantizeLinear and DequantizeLinear, all versions and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from eps.cpu.arrays import Array, DType, axis_in, check_allocation, is_floating, is_narrow_float
from eps.cpu.kernels.cast import saturate_to_float8
from ort_lite.ep import KernelDef, kernel, numpy_dtype

if TYPE_CHECKING:
    from ort_lite.ep import KernelFn, KernelInfo

UINT8 = np.dtype(np.uint8)


def broadcast_along(values: Array, x: Array, axis: int, block: int) -> Array:
    """Scales or zero points shaped to go with `x`.

    Args:
        values: One for the tensor, one for each slice along `axis`, or (block > 0) one for
            each block of slices.
        x: What they are for.
        axis: May be negative.
        block: Slices that share an entry; 0 for none.

    Raises:
        ValueError: Their shape does not fit.
    """
    if values.size == 1 and not block:
        return values.reshape(())
    at = axis_in(axis, x.ndim)
    if not block:
        if values.shape != (x.shape[at],):
            raise ValueError(f"scale or zero point {values.shape} for axis {at} of {x.shape}")
        return values.reshape((-1,) + (1,) * (x.ndim - at - 1))
    if values.ndim != x.ndim:
        raise ValueError(f"blocked scale or zero point {values.shape} for {x.shape}")
    return np.take(repeat_elements(values, block, at), np.arange(x.shape[at]), at)


def repeat_elements(values: Array, count: int, axis: int) -> Array:
    """Every element of `values` as often as an attribute says.

    Raises:
        ValueError: That does not fit into memory, or is negative.
    """
    check_allocation((count, values.size), values.dtype)
    return np.repeat(values, count, axis)


def integer_range(dtype: DType) -> tuple[int, int]:
    """Least and greatest value, of ml_dtypes' small integers too."""
    limits = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]  # its stub
    return int(limits.min), int(limits.max)


def round_to_integers(scaled: Array, zero: Array | None, dtype: DType) -> Array:
    """round(scaled) + zero, saturated to the integers of `dtype`; halves go to even.

    NaN becomes the least value, as a conversion on x86 makes it.
    """
    low, high = integer_range(dtype)
    values = np.asarray(np.rint(scaled))
    if zero is not None:
        values = np.add(values, zero.astype(values.dtype), out=values[...])
    np.clip(values, low, high, out=values)
    if values.dtype == np.float32 and dtype.itemsize < 4:
        return values.astype(np.int32).astype(dtype)
    return values.astype(dtype)


def requantize(total: Array, factor: Array, zero: Array) -> Array:
    """round(total * factor) + zero in the type of `zero`; `total`, whole numbers, is lost."""
    scaled = total if total.dtype == np.float32 else total.astype(np.float32)
    if np.broadcast_shapes(scaled.shape, factor.shape) != scaled.shape:
        return round_to_integers(scaled * factor, zero, zero.dtype)
    scaled *= factor
    np.rint(scaled, out=scaled)
    low, high = integer_range(zero.dtype)
    if zero.any():
        scaled += zero.astype(np.float32)
    return scaled.clip(low, high, out=scaled).astype(zero.dtype)


def _quantize(info: KernelInfo) -> KernelFn:
    """ONNX QuantizeLinear; the type is that of the zero point, of output_dtype, or uint8."""
    axis, block = info.attr("axis", 1), info.attr("block_size", 0)
    saturate = bool(info.attr("saturate", 1))
    output_dtype, precision = info.attr("output_dtype", 0), info.attr("precision", 0)

    def quantize(x: Array, scale: Array, zero: Array | None = None) -> Array:
        dtype = (
            zero.dtype if zero is not None else numpy_dtype(output_dtype) if output_dtype else UINT8
        )
        if output_dtype and numpy_dtype(output_dtype) != dtype:
            raise ValueError(f"output_dtype {output_dtype} differs from the zero point's {dtype}")
        kind = numpy_dtype(precision) if precision else scale.dtype
        factor = broadcast_along(scale, x, axis, block).astype(kind)
        shift = None if zero is None else broadcast_along(zero, x, axis, block)
        if kind.itemsize < 4:  # divided in float32 and rounded to the narrow type once
            scaled = (x.astype(np.float32) / factor.astype(np.float32)).astype(kind)
            scaled = scaled.astype(np.float32)
        else:
            scaled = np.asarray(x.astype(kind, copy=False) / factor)
        if not is_floating(dtype):
            return round_to_integers(scaled, shift, dtype)
        if dtype.name.startswith("float8") and saturate:
            return saturate_to_float8(scaled, dtype)
        return scaled.astype(dtype)

    return quantize


def _dequantize(info: KernelInfo) -> KernelFn:
    """(x - zero) * scale: ONNX DequantizeLinear."""
    axis, block = info.attr("axis", 1), info.attr("block_size", 0)
    output_dtype = info.attr("output_dtype", 0)

    def dequantize(x: Array, scale: Array, zero: Array | None = None) -> Array:
        dtype = numpy_dtype(output_dtype) if output_dtype else scale.dtype
        factor = broadcast_along(scale, x, axis, block)
        if is_narrow_float(factor.dtype):
            factor = factor.astype(np.float32)
        if x.dtype == np.int32:  # float32 would round; there is no zero point
            shifted = x.astype(np.int64)
        else:
            shifted = x.astype(factor.dtype)
        if zero is not None and (zero.dtype.kind != "i" or zero.any()):
            shifted -= broadcast_along(zero, x, axis, block).astype(shifted.dtype)
        return np.asarray(shifted * factor).astype(dtype, copy=False)

    return dequantize


def _dynamic_quantize(_: KernelInfo) -> KernelFn:
    """ONNX DynamicQuantizeLinear-11: to uint8, with the range of the data and zero in it."""

    def dynamic_quantize(x: Array) -> tuple[Array, Array, Array]:
        low = np.minimum(x.min(initial=0), np.float32(0))
        high = np.maximum(x.max(initial=0), np.float32(0))
        scale = np.float32((high - low) / np.float32(255))
        if scale == 0:
            scale = np.float32(1)
        zero = np.rint(np.clip(-low / scale, 0, 255)).astype(np.uint8)
        y = round_to_integers(np.asarray(x / scale), np.asarray(zero), UINT8)
        return y, np.asarray(scale), np.asarray(zero)

    return dynamic_quantize


KERNELS: tuple[KernelDef, ...] = (
    kernel("QuantizeLinear", since=(10, 28))(_quantize),
    kernel("DequantizeLinear", since=(10, 28))(_dequantize),
    kernel("DynamicQuantizeLinear", since=(11, 11))(_dynamic_quantize),
)

"""Cast, CastLike and BitCast between all element types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ctx_formats.onnx_model import DataType
from eps.cpu.arrays import FLOAT32, is_floating, is_narrow_float
from eps.cpu.kernels.halves import round_to_half
from ort_lite.ep import KernelDef, kernel, numpy_dtype

if TYPE_CHECKING:
    from eps.cpu.arrays import Array, DType
    from ort_lite.ep import KernelFn, KernelInfo

FLOAT16 = np.dtype(np.float16)
_E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)
_SPECIAL = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}


def cast(x: Array, dtype: DType, *, saturate: bool = True, round_mode: str = "up") -> Array:
    """`x` as `dtype`: ONNX Cast-24.

    Args:
        x: Of any type.
        dtype: To cast to; object is text.
        saturate: For 8-bit floats: out of range gives the largest value, not NaN or infinity.
        round_mode: For float8e8m0: "up", "down" or "nearest".
    """
    if x.dtype == dtype:
        return x
    if dtype.kind == "O":
        return _to_strings(x)
    if x.dtype.kind == "O":
        return _from_strings(x, dtype)
    if dtype == _E8M0:
        return to_e8m0(x, saturate=saturate, round_mode=round_mode)
    if saturate and dtype.name.startswith("float8"):
        return saturate_to_float8(x, dtype)
    if dtype == FLOAT16 and x.dtype == FLOAT32:
        return round_to_half(x)
    return x.astype(dtype)


def saturate_to_float8(x: Array, dtype: DType) -> Array:
    """Floats rounded to a float8 type; what is too large, infinities too, to its largest."""
    largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 or not is_floating(x.dtype) else x
    return np.clip(wide, -largest, largest).astype(dtype)


def to_e8m0(x: Array, *, saturate: bool, round_mode: str) -> Array:
    """Powers of two: the exponent of |x| as float32, rounded by its fraction."""
    bits = x.astype(np.float32).view(np.uint32)
    exponent = ((bits >> 23) & 0xFF).astype(np.uint16)
    fraction = bits & 0x7FFFFF
    if round_mode == "up":
        raised = fraction > 0
    elif round_mode == "nearest":  # halves go up, but not from the subnormals
        half = np.uint32(1 << 22)
        raised = (fraction > half) | ((fraction == half) & (exponent > 0))
    elif round_mode == "down":
        raised = np.zeros(x.shape, np.bool_)
    else:
        raise ValueError(f"round_mode is '{round_mode}', expected up, down or nearest")
    last = 0xFE if saturate else 0xFF
    raised &= exponent < last
    return np.asarray((exponent + raised).astype(np.uint8)).view(_E8M0)


def _to_strings(x: Array) -> Array:
    """Shortest text that reads back as the element; NaN, INF and -INF as ONNX spells them."""
    result = np.empty(x.size, object)
    if x.dtype.kind == "b":
        texts = ["1" if item else "0" for item in x.reshape(-1).tolist()]
    else:
        texts = x.reshape(-1).astype(np.str_).tolist()
    if is_floating(x.dtype):
        texts = [_SPECIAL.get(text, text) for text in texts]
    result[:] = texts
    return result.reshape(x.shape)


def _from_strings(x: Array, dtype: DType) -> Array:
    texts = x.reshape(-1).tolist()
    values: list[Any]
    if is_floating(dtype):
        values = [float(text) for text in texts]
        wide = np.array(values, np.float64)
        close = wide.astype(FLOAT32 if dtype.itemsize < 4 else dtype)
        return close.astype(dtype).reshape(x.shape)
    values = [_integer(text) for text in texts]
    whole = np.array(values, np.int64 if dtype.itemsize < 8 else dtype)
    return whole.astype(dtype).reshape(x.shape)


def _integer(text: str) -> int:
    """A whole number; "12.7" is undefined in ONNX, and 12 in ONNX Runtime."""
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _cast(info: KernelInfo) -> KernelFn:
    """ONNX Cast; version 1 names the type by a string."""
    to = info.attr("to")
    dtype = numpy_dtype(DataType[to] if isinstance(to, str) else to)
    saturate = bool(info.attr("saturate", 1))
    round_mode = info.attr("round_mode", "up")
    plain = dtype.kind in "biufc" and not is_narrow_float(dtype) and dtype != FLOAT16
    if plain:  # nothing to saturate or to spell
        return lambda x: x.astype(dtype, copy=False) if x.dtype.kind != "O" else cast(x, dtype)
    return lambda x: cast(x, dtype, saturate=saturate, round_mode=round_mode)


def _cast_like(info: KernelInfo) -> KernelFn:
    saturate = bool(info.attr("saturate", 1))
    round_mode = info.attr("round_mode", "up")
    return lambda x, like: cast(x, like.dtype, saturate=saturate, round_mode=round_mode)


def _bit_cast(info: KernelInfo) -> KernelFn:
    """ONNX BitCast-26: the same bits as another type of the same size."""
    dtype = numpy_dtype(info.attr("to"))

    def bit_cast(x: Array) -> Array:
        if "O" in (x.dtype.kind, dtype.kind) or x.dtype.itemsize != dtype.itemsize:
            raise ValueError(f"BitCast from {x.dtype} to {dtype}: elements differ in size")
        return np.ascontiguousarray(x).reshape(x.shape).view(dtype)

    return bit_cast


KERNELS: tuple[KernelDef, ...] = (
    kernel("Cast", since=(1, 28))(_cast),
    kernel("CastLike", since=(15, 25))(_cast_like),
    kernel("BitCast", since=(26, 26))(_bit_cast),
)

"""How many bytes a dense tensor takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import DataType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BITS: Mapping[int, int] = {
    DataType.FLOAT: 32,
    DataType.UINT8: 8,
    DataType.INT8: 8,
    DataType.UINT16: 16,
    DataType.INT16: 16,
    DataType.INT32: 32,
    DataType.INT64: 64,
    DataType.BOOL: 8,
    DataType.FLOAT16: 16,
    DataType.DOUBLE: 64,
    DataType.UINT32: 32,
    DataType.UINT64: 64,
    DataType.COMPLEX64: 64,
    DataType.COMPLEX128: 128,
    DataType.BFLOAT16: 16,
    DataType.FLOAT8E4M3FN: 8,
    DataType.FLOAT8E4M3FNUZ: 8,
    DataType.FLOAT8E5M2: 8,
    DataType.FLOAT8E5M2FNUZ: 8,
    DataType.UINT4: 4,
    DataType.INT4: 4,
    DataType.FLOAT4E2M1: 4,
    DataType.FLOAT8E8M0: 8,
    DataType.UINT2: 2,
    DataType.INT2: 2,
    DataType.FLOAT6E2M3: 6,
    DataType.FLOAT6E3M2: 6,
}


def element_bits(data_type: int) -> int:
    """Bits of one element.

    Raises:
        FormatError: A string, or a type that ONNX does not define.
    """
    bits = _BITS.get(data_type)
    if bits is None:
        raise FormatError("data_type", str(data_type), "a numeric TensorProto.DataType")
    return bits


def element_count(dims: Sequence[int]) -> int:
    """Number of elements; a rank-0 tensor has one.

    Raises:
        FormatError: A dimension is negative.
    """
    count = 1
    for dim in dims:
        if dim < 0:
            raise FormatError("dims", str(tuple(dims)), "no negative dimension")
        count *= dim
    return count


def tensor_bytes(data_type: int, dims: Sequence[int]) -> int:
    """Bytes of the packed elements, the last byte filled up with zeros."""
    return (element_count(dims) * element_bits(data_type) + 7) // 8

"""Tensors of a model as numpy arrays, and back."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.onnx_model import DataType, ExternalData, Tensor
from ctx_formats.tensor_size import element_bits, element_count, tensor_bytes
from ort_lite.model.type_text import element_text
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NUMPY: Mapping[int, np.dtype[Any]] = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.INT8: np.dtype(np.int8),
    DataType.UINT16: np.dtype(np.uint16),
    DataType.INT16: np.dtype(np.int16),
    DataType.INT32: np.dtype(np.int32),
    DataType.INT64: np.dtype(np.int64),
    DataType.STRING: np.dtype(object),
    DataType.BOOL: np.dtype(np.bool_),
    DataType.FLOAT16: np.dtype(np.float16),
    DataType.DOUBLE: np.dtype(np.float64),
    DataType.UINT32: np.dtype(np.uint32),
    DataType.UINT64: np.dtype(np.uint64),
    DataType.COMPLEX64: np.dtype(np.complex64),
    DataType.COMPLEX128: np.dtype(np.complex128),
}
"""Types that numpy has itself."""

_NARROW: Mapping[int, str] = {
    DataType.BFLOAT16: "bfloat16",
    DataType.FLOAT8E4M3FN: "float8_e4m3fn",
    DataType.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    DataType.FLOAT8E5M2: "float8_e5m2",
    DataType.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    DataType.UINT4: "uint4",
    DataType.INT4: "int4",
    DataType.FLOAT4E2M1: "float4_e2m1fn",
    DataType.FLOAT8E8M0: "float8_e8m0fnu",
    DataType.UINT2: "uint2",
    DataType.INT2: "int2",
    DataType.FLOAT6E2M3: "float6_e2m3fn",
    DataType.FLOAT6E3M2: "float6_e3m2fn",
}
"""Types that ml_dtypes has, which takes 5 ms to import."""

_ONNX: Mapping[np.dtype[Any], DataType] = {
    dtype: DataType(number) for number, dtype in _NUMPY.items()
}


@cache
def _narrow_dtypes() -> Mapping[int, np.dtype[Any]]:
    import ml_dtypes  # noqa: PLC0415 - lazy: rare

    return {number: np.dtype(getattr(ml_dtypes, name)) for number, name in _NARROW.items()}


@cache
def _narrow_numbers() -> Mapping[np.dtype[Any], DataType]:
    return {dtype: DataType(number) for number, dtype in _narrow_dtypes().items()}


_LITTLE = sys.byteorder == "little"


def numpy_dtype(data_type: int) -> np.dtype[Any]:
    """The dtype of arrays that hold `data_type`; object for strings.

    Raises:
        InvalidArgument: ONNX does not define that type.
    """
    dtype = _NUMPY.get(data_type)
    if dtype is not None:
        return dtype
    if data_type not in _NARROW:
        raise InvalidArgument(f"data type {data_type} is not defined by ONNX")
    return _narrow_dtypes()[data_type]


def onnx_data_type(dtype: np.dtype[Any]) -> DataType:
    """The ONNX type of arrays of `dtype`; any kind of text is STRING.

    Raises:
        InvalidArgument: ONNX has no such type.
    """
    if dtype.kind in "USOT":
        return DataType.STRING
    native = dtype.newbyteorder("=") if dtype.kind in "fiuc" else dtype
    data_type = _ONNX.get(native) or _narrow_numbers().get(native)
    if data_type is None:
        raise InvalidArgument(f"numpy type {dtype} has no ONNX type")
    return data_type


def type_string(dtype: np.dtype[Any]) -> str:
    """`tensor(float)`, ..., for arrays of `dtype`.

    Raises:
        InvalidArgument: ONNX has no such type.
    """
    return f"tensor({element_text(onnx_data_type(dtype))})"


def to_numpy(
    tensor: Tensor, read_external: Callable[[ExternalData], memoryview] | None = None
) -> np.ndarray[Any, Any]:
    """A read-only array of the tensor's elements, over its own bytes where they allow it.

    Args:
        tensor: Elements of less than 8 bits become one-byte elements of the ml_dtypes type.
        read_external: Returns the bytes of external data.

    Raises:
        Fail: The data is external and `read_external` is None, or its size is wrong.
    """
    dtype = numpy_dtype(tensor.data_type)
    data = tensor.data
    if isinstance(data, ExternalData):
        if read_external is None:
            raise Fail(f"tensor '{tensor.name}': its data is in '{data.location}'")
        data = read_external(data)
    if isinstance(data, tuple):
        return _strings(tensor, data)
    _check_size(tensor, data)
    bits = element_bits(tensor.data_type)
    if bits < 8:
        flat = _unpack(data, bits, element_count(tensor.dims), dtype)
    elif not data:
        flat = np.empty(0, dtype)  # frombuffer refuses an empty buffer
    else:
        flat = np.frombuffer(data, dtype if _LITTLE else dtype.newbyteorder("<"))
    try:
        array = flat.reshape(tensor.dims)
    except ValueError as exc:  # empty, with sizes whose product numpy cannot count
        raise Fail(f"tensor '{tensor.name}': no array has the shape {tensor.dims}: {exc}") from exc
    array.flags.writeable = False
    return array


def from_numpy(array: np.ndarray[Any, Any], name: str = "") -> Tensor:
    """A tensor over the array's bytes, copied only if they are not in order.

    Raises:
        InvalidArgument: ONNX has no such type.
    """
    data_type = onnx_data_type(array.dtype)
    if data_type == DataType.STRING:
        texts = tuple(
            item if isinstance(item, bytes) else str(item).encode() for item in array.flat
        )
        return Tensor(name, data_type, array.shape, texts)
    bits = element_bits(data_type)
    if bits < 8:
        raw = _pack(array, bits)
    else:
        little = array.dtype if _LITTLE else array.dtype.newbyteorder("<")
        raw = np.ascontiguousarray(array, little).reshape(-1)
    return Tensor(name, data_type, array.shape, raw.view(np.uint8).data.toreadonly())


def _strings(tensor: Tensor, data: tuple[bytes, ...]) -> np.ndarray[Any, Any]:
    if len(data) != element_count(tensor.dims):
        raise Fail(f"tensor '{tensor.name}': {len(data)} strings for shape {tensor.dims}")
    array = np.empty(len(data), object)
    for at, item in enumerate(data):
        try:
            array[at] = item.decode()
        except UnicodeDecodeError as exc:
            raise Fail(f"tensor '{tensor.name}': string {at} is not UTF-8: {exc}") from exc
    array = array.reshape(tensor.dims)
    array.flags.writeable = False
    return array


def _check_size(tensor: Tensor, data: memoryview) -> None:
    size = tensor_bytes(tensor.data_type, tensor.dims)
    if data.nbytes != size:
        raise Fail(
            f"tensor '{tensor.name}': {data.nbytes} bytes, its type and shape "
            f"{tensor.dims} take {size}"
        )


def _unpack(data: memoryview, bits: int, count: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """One element a byte; the first element is in the lowest bits (onnx.proto raw_data)."""
    packed = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
    stream = np.unpackbits(packed, count=count * bits, bitorder="little").reshape(count, bits)
    codes = np.packbits(stream, axis=1, bitorder="little").reshape(count)
    if dtype.name.startswith("int"):  # ml_dtypes keeps signed codes sign-extended
        sign = np.uint8(1 << (bits - 1))
        codes = (codes ^ sign) - sign
    return codes.view(dtype)


def _pack(array: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    codes = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    stream = np.unpackbits(codes, axis=1, count=bits, bitorder="little")
    return np.packbits(stream, bitorder="little")

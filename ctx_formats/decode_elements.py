"""A tensor's typed fields (float_data, int32_data, ...) as the bytes that raw_data would have.

Source: onnx.proto (IR version 14), TensorProto: which field a type travels in, and how types
narrower than the field are packed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import DataType
from ctx_formats.tensor_size import element_bits
from ctx_formats.wire import read_packed_varints, signed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_FLOAT_DATA, _INT32_DATA, _INT64_DATA, _DOUBLE_DATA, _UINT64_DATA = 4, 5, 7, 10, 11
_NAMES = {4: "float_data", 5: "int32_data", 7: "int64_data", 10: "double_data", 11: "uint64_data"}
_FIELDS: Mapping[int, int] = {
    DataType.FLOAT: _FLOAT_DATA,
    DataType.COMPLEX64: _FLOAT_DATA,
    DataType.DOUBLE: _DOUBLE_DATA,
    DataType.COMPLEX128: _DOUBLE_DATA,
    DataType.INT64: _INT64_DATA,
    DataType.UINT32: _UINT64_DATA,
    DataType.UINT64: _UINT64_DATA,
}
"""Every other numeric type travels in int32_data."""

_SIX_BITS = (DataType.FLOAT6E2M3, DataType.FLOAT6E3M2)


def packed_elements(
    data_type: int, count: int, elements: Mapping[int, Sequence[memoryview | int]]
) -> memoryview:
    """The little-endian elements, packed as raw_data is.

    Args:
        data_type: A numeric DataType.
        count: Elements that the shape announces; nothing is allocated by it.
        elements: The one typed field that the tensor has: its number, its pieces in order
            (packed bytes, or a single varint's value).

    Raises:
        FormatError: The field is not the one for the type, or a value does not fit it.
    """
    ((number, pieces),) = elements.items()
    wanted = _FIELDS.get(data_type, _INT32_DATA)
    if number != wanted:
        raise FormatError("data", f"in {_NAMES[number]}", f"in {_NAMES[wanted]}")
    if wanted in (_FLOAT_DATA, _DOUBLE_DATA):
        views = [piece for piece in pieces if isinstance(piece, memoryview)]
        return views[0] if len(views) == 1 else memoryview(b"".join(views))
    packed = _pack_elements(data_type, pieces)
    if data_type in _SIX_BITS:
        packed = _six_bits(packed, count)
    return memoryview(packed)


def _chunks(pieces: Sequence[memoryview | int]) -> Iterator[list[int]]:
    for piece in pieces:
        if isinstance(piece, int):
            yield [piece]
        else:
            yield from read_packed_varints(piece, 0, len(piece))


def _pack_elements(data_type: int, pieces: Sequence[memoryview | int]) -> bytes:
    """One entry to an element; to a byte of elements for types of 4 and 2 bits."""
    size = max(1, element_bits(data_type) // 8)
    code = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
    out = bytearray()
    for values in _chunks(pieces):
        fitting = values
        if data_type == DataType.BOOL:
            fitting = [value != 0 for value in values]
        elif values and max(values) >> 8 * size:
            fitting = [_fit(value, 8 * size) for value in values]
        out += struct.pack(f"<{len(fitting)}{code}", *fitting)
    return bytes(out)


def _fit(value: int, bits: int) -> int:
    """A varint as `bits` bits: negative ones are sign-extended to 64."""
    number = signed(value)
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise FormatError("data", f"element {number}", f"{bits} bits")
    return number & (1 << bits) - 1


def _six_bits(codes: bytes, count: int) -> bytes:
    """One 6-bit code to a byte packed to four codes in three bytes, low bits first."""
    if len(codes) != count:
        raise FormatError("data", f"{len(codes)} elements", str(count))
    if codes and max(codes) > 0x3F:
        raise FormatError("data", f"element {max(codes)}", "6 bits")
    out = bytearray()
    for at in range(0, len(codes), 4):
        word = sum(code << 6 * i for i, code in enumerate(codes[at : at + 4]))
        out += word.to_bytes(3, "little")
    return bytes(out[: (6 * count + 7) // 8])

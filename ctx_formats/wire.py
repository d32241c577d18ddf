"""Protobuf's wire format over bytes that nobody vouches for.

Source: protobuf.dev/programming-guides/encoding. Varints are at most ten bytes; groups, which
onnx.proto has never used, are refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 10
_U64 = (1 << 64) - 1

Field = tuple[int, int, int, int]
"""Field number, wire type, and for a varint (value, 0), else the [start, end) of the bytes."""


def read_varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """The unsigned 64-bit varint at `at` and the offset after it.

    Raises:
        FormatError: It runs past `end` or past ten bytes.
    """
    value = shift = 0
    for position in range(at, min(end, at + MAX_VARINT_BYTES)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _U64, position + 1
        shift += 7
    raise FormatError("varint", f"unterminated at byte {at}", f"at most {MAX_VARINT_BYTES} bytes")


def read_fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in data[start:end], in the order of the file.

    Raises:
        FormatError: A length runs past `end`, a tag is 0 or a wire type is not one of ours.
    """
    at = start
    while at < end:
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = read_varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            raise FormatError("tag", f"field number 0 at byte {at}")
        if wire_type == LENGTH_DELIMITED:
            if at < end and data[at] < 0x80:
                size = data[at]
                at += 1
            else:
                size, at = read_varint(data, at, end)
            if size > end - at:
                raise FormatError(
                    f"field {number}", f"{size} bytes announced at byte {at}", f"at most {end - at}"
                )
            yield number, wire_type, at, at + size
            at += size
        elif wire_type == VARINT:
            value, at = read_varint(data, at, end)
            yield number, wire_type, value, 0
        elif wire_type in (FIXED32, FIXED64):
            size = 4 if wire_type == FIXED32 else 8
            if size > end - at:
                raise FormatError(f"field {number}", f"{end - at} bytes left", f"{size}")
            yield number, wire_type, at, at + size
            at += size
        else:
            raise FormatError(f"field {number}", f"wire type {wire_type}", "0, 1, 2 or 5")


def read_packed_varints(data: memoryview, start: int, end: int) -> list[int]:
    """The unsigned 64-bit varints of a packed repeated field."""
    values = []
    at = start
    while at < end:
        byte = data[at]
        if byte < 0x80:
            values.append(byte)
            at += 1
        else:
            value, at = read_varint(data, at, end)
            values.append(value)
    return values


def signed(value: int) -> int:
    """A varint's 64 bits as the int64 (or sign-extended int32) they stand for."""
    return value - (1 << 64) if value >= 1 << 63 else value


def read_float(data: memoryview, at: int) -> float:
    """The little-endian IEEE single at `at`."""
    value: float = struct.unpack_from("<f", data, at)[0]
    return value


def write_varint(value: int) -> bytes:
    """`value`, taken modulo 2**64, as a varint."""
    value &= _U64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_tag(number: int, wire_type: int) -> bytes:
    """The tag of a field."""
    return write_varint(number << 3 | wire_type)

"""Protobuf's wire format over untrusted bytes.

Source: protobuf.dev/programming-guides/encoding. Varints are at most ten bytes; groups, which
onnx.proto has never used, are refused.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Runs = Mapping[int, memoryview]
    """Bytes of a file that are held apart from the rest of it, by their offset in the file."""

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 10
MAX_TAG = (1 << 32) - 1
_U64 = (1 << 64) - 1
_CHUNK = 1 << 16
_ONE_BYTE = tuple(bytes([value]) for value in range(0x80))

NO_RUNS: Runs = {}

Field = tuple[int, int, int]
"""A field's tag, and for a varint (value, 0), else the [start, end) of its bytes."""


def varint_tag(number: int) -> int:
    """The tag of field `number` where it travels as a varint."""
    return number << 3 | VARINT


def delimited_tag(number: int) -> int:
    """The tag of field `number` where it is text, bytes, a message or packed."""
    return number << 3 | LENGTH_DELIMITED


def fixed32_tag(number: int) -> int:
    """The tag of field `number` where it travels as four bytes."""
    return number << 3 | FIXED32


def fixed64_tag(number: int) -> int:
    """The tag of field `number` where it travels as eight bytes."""
    return number << 3 | FIXED64


def read_varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
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


def read_fields(data: bytes | memoryview, start: int, end: int) -> Iterator[Field]:
    """The fields of the message in data[start:end], in the order of the file.

    The loop over every byte that is not bulk: tags and lengths of one byte, nearly all of
    them, take no call.

    Raises:
        FormatError: A length runs past `end`, or a tag is none.
    """
    at = start
    while at < end:
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _read_tag(data, at, end)
        wire_type = tag & 7
        if wire_type == LENGTH_DELIMITED and tag > 7:
            if at < end and (size := data[at]) < 0x80:
                at += 1
            else:
                size, at = read_varint(data, at, end)
            stop = at + size
            if stop > end:
                raise _too_long(tag, size, at, end)
            yield tag, at, stop
            at = stop
        elif wire_type == VARINT and tag > 7:
            if at < end and (value := data[at]) < 0x80:
                at += 1
            else:
                value, at = read_varint(data, at, end)
            yield tag, value, 0
        else:
            stop = at + _fixed_size(tag, at)
            if stop > end:
                raise _too_long(tag, stop - at, at, end)
            yield tag, at, stop
            at = stop


def read_field_span(data: memoryview, at: int, end: int) -> tuple[int, int, int]:
    """Tag, start and stop of the field at `at`, of a varint those of its bytes.

    Raises:
        FormatError: There is none.
    """
    tag, start = read_varint(data, at, end)
    wire_type = tag & 7
    if wire_type == LENGTH_DELIMITED:
        size, start = read_varint(data, start, end)
        stop = start + size
    elif wire_type == VARINT:
        stop = read_varint(data, start, end)[1]
    else:
        stop = start + {FIXED32: 4, FIXED64: 8}.get(wire_type, end)
    if stop > end:
        raise FormatError(f"field {tag >> 3}", f"ends at {stop}", f"at most {end}")
    return tag, start, stop


def _read_tag(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    tag, after = read_varint(data, at, end)
    if tag > MAX_TAG:
        raise FormatError("tag", f"{tag} at byte {at}", f"at most {MAX_TAG}")
    return tag, after


def _fixed_size(tag: int, at: int) -> int:
    if tag < 8:
        raise FormatError("tag", f"field number 0 before byte {at}", "1 or more")
    size = {FIXED32: 4, FIXED64: 8}.get(tag & 7)
    if size is None:
        raise FormatError(f"field {tag >> 3}", f"wire type {tag & 7}", "0, 1, 2 or 5")
    return size


def _too_long(tag: int, size: int, at: int, end: int) -> FormatError:
    return FormatError(
        f"field {tag >> 3}", f"{size} bytes announced at byte {at}", f"at most {end - at}"
    )


def read_packed_varints(data: memoryview, start: int, end: int) -> Iterator[list[int]]:
    """The unsigned 64-bit varints of a packed repeated field, some thousand at a time.

    In pieces, because Python's integers take many times the room of the bytes they stand for.

    Raises:
        FormatError: One is unterminated or over ten bytes.
    """
    value = shift = 0
    for at in range(start, end, _CHUNK):
        chunk = bytes(data[at : min(end, at + _CHUNK)])
        if not shift and chunk.isascii():  # every varint is one byte
            yield list(chunk)
            continue
        values = []
        for byte in chunk:
            if byte < 0x80:
                values.append((value | byte << shift) & _U64)
                value = shift = 0
            else:
                value |= (byte & 0x7F) << shift
                shift += 7
                if shift >= 7 * MAX_VARINT_BYTES:
                    raise FormatError("varint", "over ten bytes", "at most ten")
        yield values
    if shift:
        raise FormatError("varint", f"unterminated at byte {end}", "a last byte below 128")


def as_int64(value: int) -> int:
    """A varint's 64 bits as the int64 they stand for."""
    return value - (1 << 64) if value >= 1 << 63 else value


def int32(value: int) -> int:
    """A varint as the int32 or enum it stands for: protobuf drops the upper 32 bits."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def read_float(data: memoryview, at: int) -> float:
    """The little-endian IEEE single at `at`."""
    value: float = struct.unpack_from("<f", data, at)[0]
    return value


def write_varint(value: int) -> bytes:
    """`value`, an int64 or uint64, as a varint.

    Raises:
        FormatError: It does not fit 64 bits.
    """
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    if not -(1 << 63) <= value <= _U64:
        raise FormatError("integer", str(value)[:40], "64 bits")
    value &= _U64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_KEY, _VALUE = delimited_tag(1), delimited_tag(2)


def decode_text(data: bytes | memoryview, start: int, end: int, what: str) -> str:
    """Decode a protobuf string, which is UTF-8.

    Raises:
        FormatError: It is not UTF-8.
    """
    try:
        return str(data[start:end], "utf-8")
    except UnicodeDecodeError as exc:
        raise not_text(exc, what) from exc


def not_text(exc: UnicodeDecodeError, what: str) -> FormatError:
    """The error for bytes that should be text."""
    return FormatError(what, f"{bytes(exc.object[:40])!r}", "UTF-8 text")


def decode_entry(data: bytes | memoryview, start: int, end: int, what: str) -> tuple[str, str]:
    """Decode a StringStringEntryProto to key and value."""
    key = value = ""
    for tag, a, b in read_fields(data, start, end):
        if tag == _KEY:
            key = decode_text(data, a, b, f"{what}.key")
        elif tag == _VALUE:
            value = decode_text(data, a, b, f"{what}.value")
    return key, value

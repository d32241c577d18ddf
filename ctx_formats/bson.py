"""The part of BSON (bsonspec.org 1.1) that the container's index uses.

Documents, UTF-8 strings, 32- and 64-bit integers, doubles and booleans; anything else is
refused. Lengths are checked before a byte is read, names may not repeat.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DEPTH = 8
_DOUBLE, _STRING, _DOCUMENT, _BOOLEAN, _INT32, _INT64 = 0x01, 0x02, 0x03, 0x08, 0x10, 0x12
_SMALLEST = 5
"""Bytes of an empty document: its int32 size and the closing zero."""

BsonValue = int | float | bool | str | dict[str, "BsonValue"]


def encode_document(document: Mapping[str, BsonValue]) -> bytes:
    """A document; every integer becomes an int64, so that sizes do not depend on values."""
    body = bytearray()
    for key, value in document.items():
        name = key.encode()
        if b"\0" in name:
            raise ValueError(f"BSON name {key!r} holds a NUL")
        kind, data = _encode_value(value)
        body += bytes([kind]) + name + b"\0" + data
    return struct.pack("<i", len(body) + _SMALLEST) + bytes(body) + b"\0"


def _encode_value(value: BsonValue) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return _BOOLEAN, bytes([value])
    if isinstance(value, int):
        return _INT64, struct.pack("<q", value)
    if isinstance(value, float):
        return _DOUBLE, struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return _STRING, struct.pack("<i", len(text)) + text
    return _DOCUMENT, encode_document(value)


def decode_document(data: memoryview, *, what: str = "bson") -> dict[str, BsonValue]:
    """The document that fills `data` exactly.

    Raises:
        FormatError: Anything that is not such a document.
    """
    return _decode(data, 0, len(data), what, 0)


def _decode(data: memoryview, start: int, end: int, what: str, depth: int) -> dict[str, BsonValue]:
    if depth > MAX_DEPTH:
        raise FormatError(what, f"nested over {MAX_DEPTH} deep")
    if end - start < _SMALLEST:
        raise FormatError(what, f"{end - start} bytes", f"at least {_SMALLEST}")
    (size,) = struct.unpack_from("<i", data, start)
    if size != end - start or data[end - 1] != 0:
        raise FormatError(what, f"size {size}, last byte {data[end - 1]}", f"size {end - start}, 0")
    found: dict[str, BsonValue] = {}
    at, last = start + 4, end - 1
    while at < last:
        kind = data[at]
        name, at = _name(data, at + 1, last, what)
        field = f"{what}.{name}"
        if name in found:
            raise FormatError(field, "twice", "once")
        found[name], at = _value(data, kind, (at, last), field, depth)
    return found


def _name(data: memoryview, at: int, last: int, what: str) -> tuple[str, int]:
    for end in range(at, last):
        if data[end] == 0:
            return _text(data, at, end, what), end + 1
    raise FormatError(what, "a name without its closing zero")


def _text(data: memoryview, start: int, end: int, what: str) -> str:
    try:
        return str(data[start:end], "utf-8")
    except UnicodeDecodeError as exc:
        raise FormatError(what, "bytes that are not UTF-8", "UTF-8 text") from exc


def _value(
    data: memoryview, kind: int, span: tuple[int, int], field: str, depth: int
) -> tuple[BsonValue, int]:
    at, last = span
    if kind == _STRING:
        size = _size(data, at, last, field)
        if data[at + 4 + size - 1] != 0:
            raise FormatError(field, "a string without its closing zero")
        return _text(data, at + 4, at + 4 + size - 1, field), at + 4 + size
    if kind == _DOCUMENT:
        size = _size(data, at, last, field, counted=4)
        return _decode(data, at, at + size, field, depth + 1), at + size
    fixed = {_DOUBLE: "<d", _INT32: "<i", _INT64: "<q", _BOOLEAN: "<B"}.get(kind)
    if fixed is None:
        raise FormatError(field, f"BSON type 0x{kind:02x}", "a string, number or document")
    width = struct.calcsize(fixed)
    if at + width > last:
        raise FormatError(field, f"{last - at} bytes left", str(width))
    (value,) = struct.unpack_from(fixed, data, at)
    if kind == _BOOLEAN:
        if value > 1:
            raise FormatError(field, f"boolean {value}", "0 or 1")
        value = bool(value)
    return value, at + width


def _size(data: memoryview, at: int, last: int, field: str, *, counted: int = 0) -> int:
    """A length prefix; `counted` is how much of itself it includes."""
    if at + 4 > last:
        raise FormatError(field, f"{last - at} bytes left", "a length")
    size: int = struct.unpack_from("<i", data, at)[0]
    if size < max(1, counted) or at + 4 - counted + size > last:
        raise FormatError(field, f"length {size}", f"1 to {last - at - 4 + counted}")
    return size

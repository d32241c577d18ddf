"""The part of BSON (bsonspec.org 1.1) that the container's index uses.

Written are documents, UTF-8 strings, 64-bit integers, doubles and booleans; read are also
32-bit integers, null, arrays and binary data, which other producers may put next to what we
look at. Anything else is refused. Lengths are checked before a byte is read, names may not
repeat.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DEPTH = 8
MAX_ELEMENTS = 1 << 18
_NAME_IN_MESSAGES = 80
"""Characters of a name in a path: a path is built for every element, and names may be megabytes."""
_DOUBLE, _STRING, _DOCUMENT, _ARRAY, _BINARY = 0x01, 0x02, 0x03, 0x04, 0x05
_BOOLEAN, _NULL, _INT32, _INT64 = 0x08, 0x0A, 0x10, 0x12
_FIXED = {_DOUBLE: "<d", _INT32: "<i", _INT64: "<q", _BOOLEAN: "<B"}
_SMALLEST = 5
"""Bytes of an empty document: its int32 size and the closing zero."""

BsonValue = int | float | bool | str | bytes | None | dict[str, "BsonValue"] | list["BsonValue"]
Writable = int | float | bool | str | dict[str, "Writable"]


def encode_document(document: Mapping[str, Writable]) -> bytes:
    """A document; every integer becomes an int64, so that sizes do not depend on values."""
    body = bytearray()
    for key, value in document.items():
        name = key.encode()
        if b"\0" in name:
            raise ValueError(f"BSON name {key!r} holds a NUL")
        kind, data = _encode_value(value)
        body += bytes([kind]) + name + b"\0" + data
    return struct.pack("<i", len(body) + _SMALLEST) + bytes(body) + b"\0"


def _encode_value(value: Writable) -> tuple[int, bytes]:
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
    decoder = _Decoder(bytes(data))
    return decoder.document(0, len(data), what, 0)


class _Decoder:
    """One document and how many elements of it were read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = 0

    def document(self, start: int, end: int, what: str, depth: int) -> dict[str, BsonValue]:
        """The document in [start, end)."""
        if depth > MAX_DEPTH:
            raise FormatError(what, f"nested over {MAX_DEPTH} deep")
        if end - start < _SMALLEST:
            raise FormatError(what, f"{end - start} bytes", f"at least {_SMALLEST}")
        data = self._data
        (size,) = struct.unpack_from("<i", data, start)
        last = end - 1
        if size != end - start or data[last] != 0:
            raise FormatError(
                what, f"size {size}, last byte {data[last]}", f"size {end - start}, 0"
            )
        document: dict[str, BsonValue] = {}
        at = start + 4
        while at < last:
            name, after = self._name(at + 1, last, what)
            field = f"{what}.{name[:_NAME_IN_MESSAGES]}"
            if name in document:
                raise FormatError(field, "twice", "once")
            self._count += 1
            if self._count > MAX_ELEMENTS:
                raise FormatError(what, f"over {MAX_ELEMENTS} elements")
            document[name], at = self._value(data[at], (after, last), field, depth)
        return document

    def _name(self, at: int, last: int, what: str) -> tuple[str, int]:
        end = self._data.find(b"\0", at, last)
        if end < 0:
            raise FormatError(what, "a name without its closing zero")
        return self._text(at, end, what), end + 1

    def _text(self, start: int, end: int, what: str) -> str:
        try:
            return str(self._data[start:end], "utf-8")
        except UnicodeDecodeError as exc:
            raise FormatError(what, "bytes that are not UTF-8", "UTF-8 text") from exc

    def _value(
        self, kind: int, span: tuple[int, int], field: str, depth: int
    ) -> tuple[BsonValue, int]:
        at, last = span
        if kind in _FIXED:
            return self._read_number(kind, at, last, field)
        if kind == _STRING:
            size = self._size(at, last, field, prefix=4, least=1)
            end = at + 4 + size
            if self._data[end - 1] != 0:
                raise FormatError(field, "a string without its closing zero")
            return self._text(at + 4, end - 1, field), end
        if kind in (_DOCUMENT, _ARRAY):
            end = at + self._size(at, last, field, prefix=0, least=_SMALLEST)
            inner = self.document(at, end, field, depth + 1)
            return (list(inner.values()) if kind == _ARRAY else inner), end
        if kind == _BINARY:
            end = at + 5 + self._size(at, last, field, prefix=5, least=0)
            return self._data[at + 5 : end], end
        if kind == _NULL:
            return None, at
        raise FormatError(field, f"BSON type 0x{kind:02x}", "one that an index has")

    def _read_number(self, kind: int, at: int, last: int, field: str) -> tuple[BsonValue, int]:
        width = struct.calcsize(_FIXED[kind])
        if at + width > last:
            raise FormatError(field, f"{last - at} bytes left", str(width))
        (value,) = struct.unpack_from(_FIXED[kind], self._data, at)
        if kind == _BOOLEAN:
            if value > 1:
                raise FormatError(field, f"boolean {value}", "0 or 1")
            value = bool(value)
        return value, at + width

    def _size(self, at: int, last: int, field: str, *, prefix: int, least: int) -> int:
        """A length; `prefix` is how many bytes precede what it counts."""
        if at + max(prefix, 4) > last:
            raise FormatError(field, f"{last - at} bytes left", "a length")
        size: int = struct.unpack_from("<i", self._data, at)[0]
        if size < least or size > last - at - prefix:
            raise FormatError(field, f"length {size}", f"{least} to {last - at - prefix}")
        return size

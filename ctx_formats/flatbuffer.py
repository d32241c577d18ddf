"""Tables of a FlatBuffer, read without trusting any number in it.

Layout: FlatBuffers, "FlatBuffer Internals". All integers are little-endian; an offset of 0 means
that a field is not there.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

_U16, _U32, _I32, _I64 = (struct.Struct(code) for code in ("<H", "<I", "<i", "<q"))
MAX_BYTES = (1 << 31) - 1
"""Offsets are signed in places, so that no buffer is larger."""


class Table:
    """A table at a place in a buffer."""

    __slots__ = ("_data", "_end", "_field", "_fields", "_start")

    def __init__(self, data: memoryview, start: int, field: str) -> None:
        """The one that begins at byte `start`.

        Raises:
            FormatError: It or its list of fields lies outside the buffer.
        """
        self._data, self._start, self._field = data, start, field
        fields = start - _integer(data, start, _I32, field)
        self._fields = fields
        size = _integer(data, fields, _U16, field)
        length = _integer(data, fields + 2, _U16, field)
        self._end = fields + size
        if size < 4 or self._end > len(data) or length < 4 or start + length > len(data):
            raise FormatError(field, f"table of {length} bytes, {size} of fields", "both inside")

    @classmethod
    def root(cls, data: memoryview, identifier: bytes) -> Table:
        """The table that a buffer is about.

        Raises:
            FormatError: The buffer is too short or too long, or has another identifier.
        """
        if not 8 <= len(data) <= MAX_BYTES:
            raise FormatError("file", f"{len(data)} bytes", f"8 to {MAX_BYTES}")
        if data[4:8] != identifier:
            raise FormatError("identifier", repr(bytes(data[4:8])), repr(identifier))
        return cls(data, _integer(data, 0, _U32, "root"), "root")

    def integer(self, index: int, name: str) -> int:
        """Field `index`, a signed integer of 4 bytes; 0 if it is not there.

        Raises:
            FormatError: It lies outside the buffer.
        """
        place = self._place(index)
        return _integer(self._data, place, _I32, name) if place else 0

    def octets(self, index: int, name: str) -> memoryview:
        """Field `index`, a vector of bytes or a string; empty if it is not there.

        Raises:
            FormatError: It lies outside the buffer.
        """
        start, count = self._vector(index, 1, name)
        return self._data[start : start + count]

    def longs(self, index: int, name: str, *, most: int) -> tuple[int, ...]:
        """Field `index`, a vector of signed integers of 8 bytes; empty if it is not there.

        Raises:
            FormatError: It lies outside the buffer, or has more than `most` elements.
        """
        start, count = self._vector(index, 8, name)
        if count > most:
            raise FormatError(name, f"{count} elements", f"{most} at most")
        return tuple(_integer(self._data, start + 8 * i, _I64, name) for i in range(count))

    def tables(self, index: int, name: str) -> Iterator[Table]:
        """Field `index`, a vector of tables, one after the other; none if it is not there.

        Raises:
            FormatError: The vector or a table lies outside the buffer.
        """
        start, count = self._vector(index, 4, name)
        for i in range(count):
            place = start + 4 * i
            yield Table(self._data, place + _integer(self._data, place, _U32, name), f"{name}[{i}]")

    def _place(self, index: int) -> int:
        """Offset of the field's value; 0 if the field is absent."""
        entry = self._fields + 4 + 2 * index
        if entry + 2 > self._end:
            return 0
        offset = _integer(self._data, entry, _U16, self._field)
        return self._start + offset if offset else 0

    def _vector(self, index: int, width: int, name: str) -> tuple[int, int]:
        """Offset of the first element, and the number of elements."""
        place = self._place(index)
        if not place:
            return 0, 0
        begin = place + _integer(self._data, place, _U32, name)
        count = _integer(self._data, begin, _U32, name)
        if count > (len(self._data) - begin - 4) // width:
            raise FormatError(name, f"{count} elements from byte {begin + 4}", "all inside")
        return begin + 4, count


def _integer(data: memoryview, place: int, kind: struct.Struct, name: str) -> int:
    if place < 0 or place + kind.size > len(data):
        raise FormatError(name, f"byte {place} of {len(data)}", "a place inside the file")
    value: int = kind.unpack_from(data, place)[0]
    return value

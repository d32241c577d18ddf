"""Tables of a FlatBuffer, read without trusting any number in it.

Layout: FlatBuffers, "FlatBuffer Internals". All integers are little-endian; an offset of 0 means
that a field is not there. Reading takes time in proportion to the file: the tables that are read
are counted, each string and vector of numbers is decoded once however many tables name it, and
different ones may not overlap.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

_U8, _U16, _I32, _U32, _I64, _F32 = (
    struct.Struct(code) for code in ("<B", "<H", "<i", "<I", "<q", "<f")
)
MAX_BYTES = (1 << 31) - 1
"""Offsets are signed in places, so that no buffer is larger."""
MAX_TABLES = 1_000_000
"""Tables that FlatBuffers' own verifier accepts by default."""
MAX_DEPTH = 64
"""Tables inside tables that FlatBuffers' own verifier accepts by default."""
_FEW = 64


class _Buffer:
    """The bytes of one FlatBuffer, and how much of them may still be read."""

    __slots__ = ("_known", "data", "octets_left", "offsets_left", "tables_left")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.tables_left = MAX_TABLES
        # Each offset takes 4 bytes, so that only a vector of them that is shared exceeds this.
        self.offsets_left = _FEW + len(data) // 4
        self.octets_left = len(data)
        self._known: dict[tuple[int, str], object] = {}

    def enter_table(self, field: str) -> None:
        """Count one more table.

        Raises:
            FormatError: There are too many.
        """
        self.tables_left -= 1
        if self.tables_left < 0:
            raise FormatError(field, f"more than {MAX_TABLES} tables", "fewer")
        self.follow_offset(field)

    def follow_offset(self, field: str) -> None:
        """Count one more offset that is followed.

        Raises:
            FormatError: The file is too small for so many.
        """
        self.offsets_left -= 1
        if self.offsets_left < 0:
            raise FormatError(field, "more offsets than the file has room for", "fewer")

    def numbers(self, start: int, count: int, code: str, field: str) -> tuple[float | int, ...]:
        """A vector of numbers of the format `code` of struct, unpacked once.

        Raises:
            FormatError: It overlaps others.
        """
        key = (start, code)
        known = self._known.get(key)
        if known is None:
            size = count * struct.calcsize(f"<{code}")
            self._spend(size, field)
            known = struct.unpack_from(f"<{count}{code}", self.data, start)
            self._known[key] = known
        assert isinstance(known, tuple)
        return known

    def text(self, start: int, size: int, field: str) -> str:
        """A string, decoded once.

        Raises:
            FormatError: It is not UTF-8, or overlaps others.
        """
        key = (start, "s")
        known = self._known.get(key)
        if known is None:
            self._spend(size, field)
            try:
                known = str(self.data[start : start + size], "utf-8")
            except UnicodeDecodeError as exc:
                raise FormatError(field, f"{exc.reason} at byte {exc.start}", "UTF-8") from exc
            self._known[key] = known
        assert isinstance(known, str)
        return known

    def run(self, start: int, size: int, field: str) -> bytes:
        """Bytes, copied once.

        Raises:
            FormatError: They overlap others.
        """
        key = (start, "b")
        known = self._known.get(key)
        if known is None:
            self._spend(size, field)
            known = self._known[key] = bytes(self.data[start : start + size])
        assert isinstance(known, bytes)
        return known

    def _spend(self, size: int, field: str) -> None:
        self.octets_left -= size
        if self.octets_left < 0:
            raise FormatError(
                field, f"{size} bytes that other fields have, too", "bytes of its own"
            )


class Table:
    """A table at a place in a buffer."""

    __slots__ = ("_buffer", "_depth", "_end", "_field", "_fields", "_length", "_start")

    def __init__(self, buffer: _Buffer, start: int, field: str, depth: int = 1) -> None:
        """The one that begins at byte `start`.

        Raises:
            FormatError: It or its list of fields lies outside the buffer, or it is one too many.
        """
        buffer.enter_table(field)
        data = buffer.data
        self._buffer, self._start, self._field, self._depth = buffer, start, field, depth
        if depth > MAX_DEPTH:
            raise FormatError(field, f"tables nested {depth} deep", f"{MAX_DEPTH} at most")
        if start % 4:
            raise FormatError(field, f"table at byte {start}", "a multiple of 4")
        fields = start - _integer(data, start, _I32, field)
        size = _integer(data, fields, _U16, field)
        length = _integer(data, fields + 2, _U16, field)
        self._fields, self._end, self._length = fields, fields + size, length
        if (
            size < 4
            or size % 2
            or self._end > len(data)
            or length < 4
            or start + length > len(data)
        ):
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
        return cls(_Buffer(data), _integer(data, 0, _U32, "root"), "root")

    def has(self, index: int) -> bool:
        """Whether field `index` is there."""
        return bool(self._place(index, 1))

    def integer(self, index: int, name: str, default: int = 0) -> int:
        """Field `index`, a signed integer of 4 bytes; `default` if it is not there.

        Raises:
            FormatError: It lies outside the table.
        """
        return self._scalar(index, name, _I32, default)

    def word(self, index: int, name: str) -> int:
        """Field `index`, an unsigned integer of 4 bytes; 0 if it is not there."""
        return self._scalar(index, name, _U32, 0)

    def long(self, index: int, name: str, default: int = 0) -> int:
        """Field `index`, a signed integer of 8 bytes; `default` if it is not there."""
        return self._scalar(index, name, _I64, default)

    def octet(self, index: int, name: str) -> int:
        """Field `index`, an unsigned integer of one byte; 0 if it is not there."""
        return self._scalar(index, name, _U8, 0)

    def single(self, index: int) -> float:
        """Field `index`, a number of 4 bytes; 0 if it is not there."""
        place = self._place(index, 4)
        return float(_F32.unpack_from(self._buffer.data, place)[0]) if place else 0.0

    def octets(self, index: int, name: str) -> memoryview:
        """Field `index`, a vector of bytes or a string; empty if it is not there.

        Raises:
            FormatError: It lies outside the buffer.
        """
        start, count = self._vector(index, 1, name)
        return self._buffer.data[start : start + count]

    def text(self, index: int, name: str, default: str = "") -> str:
        """Field `index`, a string; `default` if it is not there.

        Raises:
            FormatError: It lies outside the buffer, or is not UTF-8.
        """
        place = self._place(index, 4)
        return self._text_at(place, name) if place else default

    def texts(self, index: int, name: str) -> tuple[str, ...] | None:
        """Field `index`, a vector of strings; None if it is not there.

        Raises:
            FormatError: One lies outside the buffer, or is not UTF-8.
        """
        if not self._place(index, 4):
            return None
        return tuple(self._text_at(place, name) for place in self._places(index, name))

    def runs(self, index: int, name: str) -> tuple[bytes, ...]:
        """Field `index`, a vector of strings, as their bytes, which need not be UTF-8.

        Raises:
            FormatError: One lies outside the buffer.
        """
        return tuple(self._run_at(place, name) for place in self._places(index, name))

    def run(self, index: int, name: str) -> bytes:
        """Field `index`, a string, as its bytes; none if it is not there.

        Raises:
            FormatError: It lies outside the buffer.
        """
        place = self._place(index, 4)
        return self._run_at(place, name) if place else b""

    def longs(self, index: int, name: str, *, most: int | None = None) -> tuple[int, ...]:
        """Field `index`, a vector of signed integers of 8 bytes; empty if it is not there.

        Raises:
            FormatError: It lies outside the buffer, or has more than `most` elements.
        """
        return self._integers(index, "q", name, most)

    def integers(self, index: int, name: str) -> tuple[int, ...]:
        """Field `index`, a vector of signed integers of 4 bytes; empty if it is not there."""
        return self._integers(index, "i", name, None)

    def singles(self, index: int, name: str) -> tuple[float, ...]:
        """Field `index`, a vector of numbers of 4 bytes; empty if it is not there."""
        start, count = self._vector(index, 4, name)
        return self._buffer.numbers(start, count, "f", name) if count else ()

    def structs(self, index: int, code: str, name: str) -> Iterator[tuple[int, ...]]:
        """Field `index`, a vector of structs of integers such as "Iii"; none if it is absent."""
        start, count = self._vector(index, 4 * len(code), name)
        if not count:
            return iter(())
        numbers = self._buffer.numbers(start, 1, code * count, name)
        step = len(code)
        return (tuple(map(int, numbers[at : at + step])) for at in range(0, len(numbers), step))

    def table(self, index: int, name: str) -> Table | None:
        """Field `index`, a table; None if it is not there.

        Raises:
            FormatError: It lies outside the buffer.
        """
        place = self._place(index, 4)
        return self._table_at(place, name) if place else None

    def tables(self, index: int, name: str) -> Iterator[Table]:
        """Field `index`, a vector of tables, one after the other; none if it is not there.

        Raises:
            FormatError: The vector or a table lies outside the buffer.
        """
        for at, place in enumerate(self._places(index, name)):
            yield self._table_at(place, f"{name}[{at}]")

    def _table_at(self, place: int, name: str) -> Table:
        offset = _integer(self._buffer.data, place, _U32, name)
        if not offset:
            raise FormatError(name, "a null offset", "a table")
        return Table(self._buffer, place + offset, name, self._depth + 1)

    def _scalar(self, index: int, name: str, kind: struct.Struct, default: int) -> int:
        place = self._place(index, kind.size, name)
        if not place:
            return default
        value: int = kind.unpack_from(self._buffer.data, place)[0]
        return value

    def _integers(self, index: int, code: str, name: str, most: int | None) -> tuple[int, ...]:
        start, count = self._vector(index, struct.calcsize(f"<{code}"), name)
        if most is not None and count > most:
            raise FormatError(name, f"{count} elements", f"{most} at most")
        return tuple(map(int, self._buffer.numbers(start, count, code, name))) if count else ()

    def _place(self, index: int, width: int, name: str = "") -> int:
        """Offset of the field's value of `width` bytes; 0 if the field is absent."""
        entry = self._fields + 4 + 2 * index
        if entry + 2 > self._end:
            return 0
        # The table was checked to lie inside the buffer, with its list of fields.
        offset: int = _U16.unpack_from(self._buffer.data, entry)[0]
        if not offset:
            return 0
        if not 4 <= offset <= self._length - width:
            raise FormatError(
                name or f"{self._field} field {index}",
                f"at byte {offset}",
                f"inside {self._length} bytes",
            )
        return self._start + offset

    def _places(self, index: int, name: str) -> Iterator[int]:
        """Places of the offsets in a vector of offsets.

        Raises:
            FormatError: The vector lies outside the buffer, or overlaps others.
        """
        start, count = self._vector(index, 4, name)
        return iter(range(start, start + 4 * count, 4))

    def _vector(self, index: int, width: int, name: str) -> tuple[int, int]:
        """Offset of the first element, and the number of elements."""
        place = self._place(index, 4)
        if not place:
            return 0, 0
        return self._vector_at(place, width, name)

    def _vector_at(self, place: int, width: int, name: str) -> tuple[int, int]:
        data = self._buffer.data
        begin = place + _integer(data, place, _U32, name)
        count = _integer(data, begin, _U32, name)
        if count > (len(data) - begin - 4) // width:
            raise FormatError(name, f"{count} elements from byte {begin + 4}", "all inside")
        return begin + 4, count

    def _run_at(self, place: int, name: str) -> bytes:
        self._buffer.follow_offset(name)
        return self._buffer.run(*self._vector_at(place, 1, name), name)

    def _text_at(self, place: int, name: str) -> str:
        self._buffer.follow_offset(name)
        return self._buffer.text(*self._vector_at(place, 1, name), name)


def _integer(data: memoryview, place: int, kind: struct.Struct, name: str) -> int:
    if place < 0 or place + kind.size > len(data):
        raise FormatError(name, f"byte {place} of {len(data)}", "a place inside the file")
    value: int = kind.unpack_from(data, place)[0]
    return value

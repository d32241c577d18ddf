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

_I32, _U32, _I64, _F32 = (struct.Struct(code) for code in ("<i", "<I", "<q", "<f"))
_LENGTHS = struct.Struct("<HH")
_read_signed, _read_word, _read_long = _I32.unpack_from, _U32.unpack_from, _I64.unpack_from
MAX_BYTES = (1 << 31) - 1
"""Offsets are signed in places, so that no buffer is larger."""
MAX_TABLES = 1_000_000
"""Tables that FlatBuffers' own verifier accepts by default."""
MAX_DEPTH = 64
"""Tables inside tables that FlatBuffers' own verifier accepts by default."""
MOST_FIELDS = 16
"""Fields of a table that can be read; no table of the formats here has more."""
_NO_FIELDS = (0,) * MOST_FIELDS
_FEW = 64


class _Buffer:
    """The bytes of one FlatBuffer, and how much of them may still be read."""

    __slots__ = ("_known", "data", "layouts", "octets_left", "offsets_left", "tables_left")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.tables_left = MAX_TABLES
        # Each offset takes 4 bytes, so that only a vector of them that is shared exceeds this.
        self.offsets_left = _FEW + len(data) // 4
        self.octets_left = len(data)
        self._known: dict[tuple[int, str], object] = {}
        self.layouts: dict[int, _Layout] = {}

    def enter_tables(self, count: int, field: str) -> None:
        """Count tables that are about to be read.

        Raises:
            FormatError: There are too many.
        """
        self.tables_left -= count
        if self.tables_left < 0:
            raise FormatError(field, f"more than {MAX_TABLES} tables", "fewer")
        self.follow_offsets(count, field)

    def follow_offsets(self, count: int, field: str) -> None:
        """Count offsets that are about to be followed.

        Raises:
            FormatError: The file is too small for so many.
        """
        self.offsets_left -= count
        if self.offsets_left < 0:
            raise FormatError(field, "more offsets than the file has room for", "fewer")

    def read_layout(self, at: int, field: str) -> _Layout:
        """The list of fields at byte `at`, which all tables of one layout share.

        Raises:
            FormatError: It lies outside the buffer.
        """
        data = self.data
        if at < 0 or at + _LENGTHS.size > len(data):
            raise _outside_error(field, at, data)
        size, length = _LENGTHS.unpack_from(data, at)
        if size < 4 or size % 2 or at + size > len(data) or length < 4:
            raise FormatError(field, f"table of {length} bytes, {size} of fields", "both inside")
        count = min((size - 4) // 2, MOST_FIELDS)
        offsets: tuple[int, ...] = struct.unpack_from(f"<{count}H", data, at + 4)
        layout = self.layouts[at] = length, (*offsets, *_NO_FIELDS[count:])
        return layout

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


_Layout = tuple[int, tuple[int, ...]]
"""Length of a table in bytes; offsets of MOST_FIELDS fields from its start, 0 for absent ones."""


def _outside_error(field: str, place: int, data: memoryview) -> FormatError:
    return FormatError(field, f"byte {place} of {len(data)}", "a place inside the file")


class Table:
    """A table at a place in a buffer."""

    __slots__ = ("_buffer", "_depth", "_field", "_length", "_offsets", "_start")

    def __init__(self, buffer: _Buffer, start: int, field: str, depth: int = 1) -> None:
        """The one that begins at byte `start`, which the caller has counted.

        Raises:
            FormatError: It or its list of fields lies outside the buffer, or it is too deep.
        """
        if depth > MAX_DEPTH:
            raise FormatError(field, f"tables nested {depth} deep", f"{MAX_DEPTH} at most")
        if start % 4:
            raise FormatError(field, f"table at byte {start}", "a multiple of 4")
        data = buffer.data
        try:
            at = start - _read_signed(data, start)[0]
        except struct.error:
            raise _outside_error(field, start, data) from None
        self._length, self._offsets = buffer.layouts.get(at) or buffer.read_layout(at, field)
        if start + self._length > len(data):
            raise FormatError(field, f"table of {self._length} bytes at {start}", "it inside")
        self._buffer, self._start, self._field, self._depth = buffer, start, field, depth

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
        buffer = _Buffer(data)
        buffer.enter_tables(1, "root")
        return cls(buffer, _read_word(data, 0)[0], "root")

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
        place = self._place(index, 8, name)
        return int(_read_long(self._buffer.data, place)[0]) if place else default

    def octet(self, index: int, name: str) -> int:
        """Field `index`, an unsigned integer of one byte; 0 if it is not there."""
        place = self._place(index, 1, name)
        return self._buffer.data[place] if place else 0

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
        if not place:
            return default
        self._buffer.follow_offsets(1, name)
        return self._buffer.text(*self._vector_at(place, 1, name), name)

    def texts(self, index: int, name: str) -> tuple[str, ...] | None:
        """Field `index`, a vector of strings; None if it is not there.

        Raises:
            FormatError: One lies outside the buffer, or is not UTF-8.
        """
        if not self._place(index, 4):
            return None
        buffer = self._buffer
        places = self._places(index, name)
        buffer.follow_offsets(len(places), name)
        return tuple([buffer.text(*self._vector_at(place, 1, name), name) for place in places])

    def runs(self, index: int, name: str) -> tuple[bytes, ...]:
        """Field `index`, a vector of strings, as their bytes, which need not be UTF-8.

        Raises:
            FormatError: One lies outside the buffer.
        """
        buffer = self._buffer
        places = self._places(index, name)
        buffer.follow_offsets(len(places), name)
        return tuple([buffer.run(*self._vector_at(place, 1, name), name) for place in places])

    def run(self, index: int, name: str) -> bytes:
        """Field `index`, a string, as its bytes; none if it is not there.

        Raises:
            FormatError: It lies outside the buffer.
        """
        place = self._place(index, 4)
        if not place:
            return b""
        self._buffer.follow_offsets(1, name)
        return self._buffer.run(*self._vector_at(place, 1, name), name)

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
        if not place:
            return None
        self._buffer.enter_tables(1, name)
        return self._table_at(place, name)

    def tables(self, index: int, name: str) -> list[Table]:
        """Field `index`, a vector of tables; empty if it is not there.

        Raises:
            FormatError: The vector or a table lies outside the buffer.
        """
        places = self._places(index, name)
        if not places:
            return []
        self._buffer.enter_tables(len(places), name)
        return [self._table_at(place, name) for place in places]

    def _table_at(self, place: int, name: str) -> Table:
        offset = _read_word(self._buffer.data, place)[0]  # `place` is inside the buffer
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
        offset = self._offsets[index]
        if not offset:
            return 0
        # The table was checked to lie inside the buffer.
        if not 4 <= offset <= self._length - width:
            raise FormatError(
                name or f"{self._field} field {index}",
                f"at byte {offset}",
                f"inside {self._length} bytes",
            )
        return self._start + offset

    def _places(self, index: int, name: str) -> range:
        """Places of the offsets in a vector of offsets.

        Raises:
            FormatError: The vector lies outside the buffer.
        """
        start, count = self._vector(index, 4, name)
        return range(start, start + 4 * count, 4)

    def _vector(self, index: int, width: int, name: str) -> tuple[int, int]:
        """Offset of the first element, and the number of elements."""
        place = self._place(index, 4)
        if not place:
            return 0, 0
        return self._vector_at(place, width, name)

    def _vector_at(self, place: int, width: int, name: str) -> tuple[int, int]:
        """The same of the vector whose offset is at `place`, inside the buffer."""
        data = self._buffer.data
        begin = place + _read_word(data, place)[0]
        try:
            count = _read_word(data, begin)[0]
        except struct.error:
            raise _outside_error(name, begin, data) from None
        if count > (len(data) - begin - 4) // width:
            raise FormatError(name, f"{count} elements from byte {begin + 4}", "all inside")
        return begin + 4, count

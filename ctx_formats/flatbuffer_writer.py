"""A FlatBuffer from front to back, each part behind the one that refers to it, weights last.

Strings are stored once, behind all tables; long runs of bytes come last, each at a multiple of 64,
and are handed on without a copy. Field lists (vtables) are shared. FlatBuffers, "FlatBuffer
Internals": scalars are aligned to their size, offsets to 4.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.flatbuffer import MAX_BYTES
from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

RUN_ALIGNMENT = 64
_WIDTHS = {"B": 1, "i": 4, "I": 4, "f": 4, "q": 8}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in a table, by its format in struct: B, i, I, f or q."""

    code: str
    value: float | int


@dataclass(frozen=True, slots=True)
class Numbers:
    """A vector of numbers; `code` may have several letters, for structs of 4-byte integers."""

    code: str
    values: Sequence[float | int]


@dataclass(frozen=True, slots=True)
class Run:
    """A vector of bytes that is stored last and not copied."""

    data: memoryview


@dataclass(frozen=True, slots=True)
class TableFields:
    """A table: its fields by their index; one that is not there is left out."""

    fields: dict[int, Field]


Field = Scalar | Numbers | Run | TableFields | bytes | list[TableFields] | list[bytes]
"""A value of a field; bytes are a string, a list is a vector of tables or of strings."""


class FlatBufferWriter:
    """Lays out one FlatBuffer."""

    def __init__(self, identifier: bytes) -> None:
        """`identifier` has 4 bytes."""
        self._out = bytearray(4) + identifier
        self._fields: dict[bytes, int] = {}
        self._texts: dict[bytes, list[int]] = {}
        self._runs: list[tuple[int, memoryview]] = []

    def finish(self, root: TableFields) -> list[bytes | memoryview]:
        """The buffer in pieces, runs as they were given.

        Raises:
            FormatError: It is larger than a FlatBuffer may be.
        """
        self._refer(0, self._add_table(root))
        for text, places in self._texts.items():
            self._align(4)
            for place in places:
                self._refer(place, len(self._out))
            self._out += struct.pack("<I", len(text)) + text + b"\0"
        pieces: list[bytes | memoryview] = []
        size, heads = len(self._out), []
        for place, data in self._runs:
            gap = -(size + 4) % RUN_ALIGNMENT
            heads.append(bytes(gap) + struct.pack("<I", min(len(data), MAX_BYTES)))
            size += gap + 4 + len(data)
            if size > MAX_BYTES:
                break
            self._refer(place, size - len(data) - 4)
        if size > MAX_BYTES:
            raise FormatError("file", "more than 2 GiB", f"{MAX_BYTES} bytes at most")
        pieces.append(bytes(self._out))
        for head, (_, data) in zip(heads, self._runs, strict=True):
            pieces += [head, data]
        return pieces

    def _add_table(self, table: TableFields) -> int:
        """Lay a table out, then the parts that it refers to."""
        ordered = sorted(table.fields.items(), key=lambda item: (-_width(item[1]), item[0]))
        at, places = 4, {}
        for index, field in ordered:
            places[index] = at
            at += _width(field)
        entries = [places.get(index, 0) for index in range(max(places, default=-1) + 1)]
        known = self._field_list(
            struct.pack(f"<HH{len(entries)}H", 4 + 2 * len(entries), at, *entries)
        )
        wide = bool(ordered) and _width(ordered[0][1]) == 8
        self._align(8 if wide else 4, ahead=4 if wide else 0)
        start = len(self._out)
        self._out += struct.pack("<i", start - known) + bytes(at - 4)
        for index, field in ordered:
            if isinstance(field, Scalar):
                struct.pack_into(f"<{field.code}", self._out, start + places[index], field.value)
        for index, part in table.fields.items():
            if not isinstance(part, Scalar):
                self._add_part(start + places[index], part)
        return start

    def _field_list(self, encoded: bytes) -> int:
        known = self._fields.get(encoded)
        if known is None:
            self._align(2)
            known = self._fields[encoded] = len(self._out)
            self._out += encoded
        return known

    def _add_part(self, place: int, part: Field) -> None:
        if isinstance(part, bytes):
            self._texts.setdefault(part, []).append(place)
        elif isinstance(part, Run):
            self._runs.append((place, part.data))
        elif isinstance(part, TableFields):
            self._refer(place, self._add_table(part))
        elif isinstance(part, Numbers):
            self._add_numbers(place, part)
        elif isinstance(part, list):
            self._align(4)
            start = len(self._out)
            self._refer(place, start)
            self._out += struct.pack("<I", len(part)) + bytes(4 * len(part))
            elements: Sequence[TableFields | bytes] = part
            for index, element in enumerate(elements):
                self._add_part(start + 4 + 4 * index, element)

    def _add_numbers(self, place: int, part: Numbers) -> None:
        width = 8 if part.code == "q" else 4
        self._align(width, ahead=4)
        self._refer(place, len(self._out))
        count = len(part.values) // len(part.code)
        self._out += struct.pack("<I", count)
        self._out += struct.pack(f"<{part.code * count}", *part.values)

    def _align(self, size: int, *, ahead: int = 0) -> None:
        """Fill up so that what lies `ahead` bytes further on is at a multiple of `size`."""
        self._out += bytes(-(len(self._out) + ahead) % size)

    def _refer(self, place: int, target: int) -> None:
        struct.pack_into("<I", self._out, place, target - place)


def _width(field: Field) -> int:
    return _WIDTHS[field.code] if isinstance(field, Scalar) else 4

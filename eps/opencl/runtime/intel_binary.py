"""Program binaries of Intel's CPU runtime without the code that its compiler began with.

Such a binary is an ELF file that holds the machine code of all kernels (.ocl.obj), what they take
(.ocl.meta), and the front end's LLVM bitcode (.ocl.ir), which is nine tenths of it. A load reads
the bitcode twice, needs nothing of it, and takes three to five times as long for that. Seen with
2026.22.10; the form is not documented, so whatever is not just like it is left alone.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

SMALL = "__kernel void wake(__global int* x) { x[0] = 0; }"
"""A program whose code takes the place of another one's."""
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_ROW = struct.Struct("<IIQQQQIIQQ")
_MAGIC = b"\x7fELF\x02\x01"
_CODE = ".ocl.ir"
_NAMES = ("", _CODE, ".ocl.meta", ".ocl.obj", ".ocl.ver", "")
"""Of sections, in order; the last holds the names."""


class _Section(NamedTuple):
    """A row of the section table, as far as it does not follow from the data, and the data."""

    row: tuple[int, ...]
    data: bytes


def is_intels(binary: bytes) -> bool:
    """Whether a binary is of the known form."""
    return _sections(binary) is not None


def with_code_of(binary: bytes, other: bytes) -> bytes | None:
    """The binary with the bitcode of `other`, which is to be small.

    A driver that compiled it anew would find no kernel and say so.

    Args:
        binary: As the driver gives it.
        other: Of a program with kernels of other names, from the same driver.

    Returns:
        None if one of the two is not of the known form.
    """
    mine, theirs = _sections(binary), _sections(other)
    if mine is None or theirs is None:
        return None
    at = _NAMES.index(_CODE)
    mine[at] = mine[at]._replace(data=theirs[at].data)
    return _join_sections(binary[: _HEADER.size], mine)


def _sections(binary: bytes) -> list[_Section] | None:
    """Sections of a binary in which every byte is accounted for."""
    end = _HEADER.size + len(_NAMES) * _ROW.size
    if len(binary) < end or not binary.startswith(_MAGIC):
        return None
    rows = [_ROW.unpack_from(binary, _HEADER.size + i * _ROW.size) for i in range(len(_NAMES))]
    sections = [_Section(row, binary[row[4] : row[4] + row[5]]) for row in rows]
    known = _join_sections(binary[: _HEADER.size], sections) == binary
    return sections if known and _names(sections) == _NAMES else None


def _names(sections: list[_Section]) -> tuple[str, ...]:
    text = sections[-1].data
    return tuple(text[s.row[0] :].split(b"\0")[0].decode("latin-1") for s in sections)


def _join_sections(head: bytes, sections: list[_Section]) -> bytes:
    """Header, table and sections without a gap, at the offsets of the table."""
    at = _HEADER.size + len(sections) * _ROW.size
    table = b""
    for row, data in sections:
        table += _ROW.pack(*row[:4], at, len(data), *row[6:])
        at += len(data)
    return b"".join((head, table, *(data for _, data in sections)))

"""docs/formats/container.md shows a real file, and explains every byte of it as it is."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/formats/container.md").read_text(encoding="utf-8")
FILE = ROOT / "tests/golden/openvino_2026.4.1/mlp_ctx_OpenVINOExecutionProvider.bin"
DATA = FILE.read_bytes()
TYPES = {0x02: "string", 0x03: "document", 0x12: "int64"}
Row = tuple[int, int, str, str]
"""Offset, bytes, field, value."""


def dump(start: int, end: int) -> str:
    """As the page prints it: offset, 16 bytes, their characters."""
    lines = []
    for at in range(start, end, 16):
        row = DATA[at : at + 16]
        shown = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        lines.append(f"{at:08x}  {row[:8].hex(' ')}  {row[8:].hex(' ')}  {shown}\n")
    return "".join(lines)


def rows() -> Iterator[Row]:
    """Every byte of the file, field by field, without ort_lite's own readers."""
    names = ("magic", "version", "header size", "offset of the index", "size of the index")
    numbers = struct.unpack_from("<8s4Q", DATA)
    yield 0, 8, names[0], numbers[0].decode()
    for i, name in enumerate(names[1:], 1):
        yield 8 * i, 8, name, f"{numbers[i]:,}"
    start, size = numbers[3], numbers[4]
    yield from document(start, "index")
    end = start + size
    places = [int(value.replace(",", "")) for _, _, name, value in document(start, "index") if
              name.endswith(("data_offset", ".size"))]  # fmt: skip
    offset, length = places
    yield end, offset - end, "filling", "zeros"
    yield offset, length, "payload", "OpenVINO's blob"
    yield offset + length, len(DATA) - offset - length, "filling", "zeros"


def document(at: int, name: str) -> Iterator[Row]:
    """A BSON document (bsonspec.org 1.1) of the three types that the index uses."""
    (size,) = struct.unpack_from("<i", DATA, at)
    yield at, 4, f"{name}: size", f"{size:,}"
    end, at = at + size, at + 4
    prefix = "" if name == "index" else f"{name}."
    while DATA[at]:
        kind, stop = DATA[at], DATA.index(0, at + 1)
        key = DATA[at + 1 : stop].decode()
        field, value = f"{prefix}{key}", stop + 1
        if kind == 0x12:
            (number,) = struct.unpack_from("<q", DATA, value)
            yield at, value + 8 - at, field, f"{number:,}"
            at = value + 8
        elif kind == 0x02:
            (length,) = struct.unpack_from("<i", DATA, value)
            text = DATA[value + 4 : value + 4 + length - 1].decode()
            yield at, value + 4 + length - at, field, f'"{text}"'
            at = value + 4 + length
        else:
            assert TYPES[kind] == "document"
            yield at, value - at, field, "a document"
            yield from document(value, field)
            (length,) = struct.unpack_from("<i", DATA, value)
            at = value + length
    yield at, 1, f"{name}: end", "0"
    assert at + 1 == end


def table() -> str:
    """The page's table."""
    lines = ["| offset | bytes | field | value |", "|---|---|---|---|"]
    lines += [f"| {at:,} | {size:,} | `{name}` | {value} |" for at, size, name, value in rows()]
    return "\n".join(lines) + "\n"


def test_the_dump_is_the_file() -> None:
    (size,) = struct.unpack_from("<Q", DATA, 32)
    shown = dump(0, 40 + size) + "*\n" + dump(65_536, 65_536 + 64) + "*\n"
    assert f"```text\n{shown}```\n" in PAGE, shown


def test_every_byte_of_the_dump_is_explained() -> None:
    assert table() in PAGE, table()


def test_the_fields_cover_the_file_without_gaps() -> None:
    at = 0
    for start, size, *_ in rows():
        assert start == at
        at += size
    assert at == len(DATA)


def test_the_digests_in_the_table_are_those_of_the_file() -> None:
    values = {name.rpartition(".")[2]: value for _, _, name, value in rows()}
    payload = next(DATA[at : at + size] for at, size, name, _ in rows() if name == "payload")
    assert values["blake3"] == f'"{blake3(payload).hexdigest()}"'
    assert values["crc"] == f"{zlib.crc32(payload):,}"
    head = DATA[: 40 + struct.unpack_from("<Q", DATA, 32)[0]]
    assert values["index_crc"] == f"{zlib.crc32(head[:-9] + bytes(9)):,}"


def test_the_file_named_in_the_page_is_this_one() -> None:
    assert re.search(re.escape(FILE.relative_to(ROOT).as_posix()), PAGE)

"""Reads an OVEP_BIN container without trusting a number in it."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from ctx_formats.bson import decode_document
from ctx_formats.container import (
    ALIGNMENT,
    CRC_KEY,
    HEAD_KEY,
    HEADER,
    INDEX_VERSION,
    MAGIC,
    MAX_INDEX_BYTES,
    VERSION,
    WEIGHTS_KEY,
    Container,
    Entry,
    padding,
)
from ctx_formats.errors import FormatError, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.bson import BsonValue

_ZEROS = bytes(ALIGNMENT)


def read_container(data: memoryview) -> Container:
    """Check a container's header, index and padding.

    Payload bytes are not looked at; `Container.read_payload` does that.

    Raises:
        FormatError: The index does not cover `data` exactly, or (reason integrity) is not
            the one that was written.
    """
    start, size = _index_span(data)
    encoded = data[start : start + size]
    index = decode_document(encoded, what="index")
    ours = _check_index(data[:start], encoded, index)
    version = index.get("version")
    if not isinstance(version, str) or version.split(".")[0] != INDEX_VERSION.split(".")[0]:
        raise FormatError("index.version", repr(version)[:40], "1.x.y")
    listed = index.get("blob_metadata_map")
    if not isinstance(listed, dict) or not listed:
        raise FormatError("index.blob_metadata_map", "no payloads", "at least one")
    entries = {name: _entry(name, value, ours=ours) for name, value in listed.items()}
    weights = _weights(index, entries) if ours else {}
    end = start + size
    first = _first_offset(index, end, ours=ours)
    if ours:
        _require_zeros(data, end, min(first, len(data)))
    parts = (*entries.values(), *weights.values())
    _check_cover(data, first, sorted(parts, key=lambda e: (e.offset, e.size)))
    producer = index.get("producer")
    return Container(data, producer if isinstance(producer, str) else "", entries, weights)


def _first_offset(index: Mapping[str, BsonValue], end: int, *, ours: bool) -> int:
    """Offset of the first payload after an index that ends at `end`."""
    nearest = end + padding(end)
    first = index.get(HEAD_KEY) if ours else None
    if first is None:
        return nearest
    if type(first) is not int or first < nearest or first % ALIGNMENT or first > MAX_INDEX_BYTES:
        raise FormatError(f"index.{HEAD_KEY}", repr(first)[:40], f"{nearest} or more, aligned")
    return first


def _weights(index: Mapping[str, BsonValue], entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Runs of weights, each payload's being among them."""
    listed = index.get(WEIGHTS_KEY, {})
    if not isinstance(listed, dict):
        raise FormatError(f"index.{WEIGHTS_KEY}", "no document", "runs of weights")
    runs = {name: _entry(name, value, ours=True) for name, value in listed.items()}
    for entry in entries.values():
        unknown = [name for name in entry.weights if name not in runs]
        if unknown:
            raise FormatError(
                f"index.blob_metadata_map.{entry.name}.weights", ",".join(unknown)[:40], "runs"
            )
    return runs


def _index_span(data: memoryview) -> tuple[int, int]:
    if len(data) < HEADER.size:
        raise FormatError("header", f"{len(data)} bytes", f"at least {HEADER.size}")
    magic, version, header_size, start, size = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise FormatError("header.magic", repr(magic), repr(MAGIC))
    if version != VERSION:
        raise FormatError("header.version", str(version), str(VERSION))
    if header_size != HEADER.size or start != HEADER.size:
        raise FormatError(
            "header", f"size {header_size}, index at {start}", f"{HEADER.size} and {HEADER.size}"
        )
    if size > MAX_INDEX_BYTES or start + size > len(data):
        raise FormatError(
            "header.index_size", str(size), f"at most {min(MAX_INDEX_BYTES, len(data) - start)}"
        )
    return start, size


def _check_index(header: memoryview, encoded: memoryview, index: Mapping[str, BsonValue]) -> bool:
    """Whether the index has our checksum, which then must fit header and index.

    The checksum is the last field, so its eight bytes are the last before the closing zero.
    """
    recorded = index.get(CRC_KEY)
    if recorded is None:
        return False
    if list(index)[-1] != CRC_KEY or not isinstance(recorded, int) or isinstance(recorded, bool):
        raise FormatError("index.index_crc", "moved or no integer", reason=Reason.INTEGRITY)
    crc = zlib.crc32(encoded[:-9], zlib.crc32(header))
    crc = zlib.crc32(bytes(9), crc)
    if crc != recorded:
        raise FormatError("index.index_crc", f"{crc:08x}", str(recorded), reason=Reason.INTEGRITY)
    return True


def _entry(name: str, value: BsonValue, *, ours: bool) -> Entry:
    field = f"index.blob_metadata_map.{name}"
    if not isinstance(value, dict):
        raise FormatError(field, "no document", "{data_offset, size}")
    offset, size = _read_count(value, "data_offset", field), _read_count(value, "size", field)
    digest, crc = value.get("blake3"), value.get("crc")
    if digest is None and crc is None and not ours:
        return Entry(name, offset, size)
    if not isinstance(digest, str) or len(digest) != 64 or not isinstance(crc, int) or not ours:
        raise FormatError(
            field,
            "digest, checksum or index checksum damaged",
            "all three",
            reason=Reason.INTEGRITY,
        )
    needed = value.get("weights", "")
    if not isinstance(needed, str):
        raise FormatError(f"{field}.weights", repr(needed)[:40], "names separated by commas")
    return Entry(name, offset, size, digest, crc, tuple(filter(None, needed.split(","))))


def _read_count(value: Mapping[str, BsonValue], key: str, field: str) -> int:
    number = value.get(key)
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise FormatError(f"{field}.{key}", repr(number)[:40], "a non-negative integer")
    return number


def _check_cover(data: memoryview, start: int, entries: Sequence[Entry]) -> None:
    """From `start` on parts in bounds, not overlapping, gapless, zero padding behind each."""
    at = start
    previous: Entry | None = None
    for entry in entries:
        if previous and (entry.offset, entry.size) == (previous.offset, previous.size):
            continue  # two partitions with one content share it
        if entry.offset + entry.size > len(data):
            raise FormatError(
                f"payload '{entry.name}'",
                f"[{entry.offset}, +{entry.size})",
                f"inside {len(data)} bytes",
            )
        if entry.offset != at:
            raise FormatError(f"payload '{entry.name}'.data_offset", str(entry.offset), str(at))
        end = at + entry.size
        at = end + padding(end)
        _require_zeros(data, end, min(at, len(data)))
        previous = entry
    if len(data) != at:
        raise FormatError("size", f"{len(data)} bytes", f"{at}")


def _require_zeros(data: memoryview, start: int, end: int) -> None:
    for at in range(start, end, ALIGNMENT):
        part = bytes(data[at : min(at + ALIGNMENT, end)])  # views are compared item by item
        if part != _ZEROS[: len(part)]:
            raise FormatError("padding", f"other than zero in [{start}, {end})", "zeros")

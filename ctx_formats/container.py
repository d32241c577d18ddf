"""The OVEP_BIN payload container, version 1: read without trusting a number in it.

    0      8 bytes  "OVEP_BIN"
    8      u64      version, 1
    16     u64      header size, 40
    24     u64      offset of the index, 40
    32     u64      size of the index
    40     BSON     index: {version, producer, blob_metadata_map: {partition: {data_offset,
                    size, blake3, crc}}, index_crc}
    ...    zeros    to the next multiple of 65,536
    ...    payload, zeros to the next multiple of 65,536, payload, ...

Integers are little-endian, offsets count from the start of the file, sizes leave padding
out. `blake3` (hex), `crc` and `index_crc` (CRC-32) are ours; ONNX Runtime's OpenVINO EP, whose
format this is, writes and reads the rest. It writes the index twice, the second time shorter,
and leaves the end of the first behind it. Normative text: docs/formats/container.md.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.bson import decode_document, encode_document
from ctx_formats.errors import FormatError, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.bson import BsonValue, Writable

MAGIC = b"OVEP_BIN"
HEADER = struct.Struct("<8sQQQQ")
VERSION = 1
ALIGNMENT = 1 << 16
MAX_INDEX_BYTES = 16 << 20
INDEX_VERSION = "1.1.0"
CRC_KEY = "index_crc"
_ZEROS = bytes(ALIGNMENT)


@dataclass(frozen=True, slots=True)
class Entry:
    """One payload.

    Attributes:
        offset: Bytes from the start of the container.
        size: Bytes without padding.
        blake3: Digest in hex, or "" where the producer records none.
        crc: CRC-32, or None where the producer records none.
    """

    name: str
    offset: int
    size: int
    blake3: str = ""
    crc: int | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """A container whose index was found to cover it exactly."""

    data: memoryview
    producer: str
    entries: Mapping[str, Entry]

    @property
    def has_digests(self) -> bool:
        """Whether every payload has one."""
        return all(entry.blake3 for entry in self.entries.values())

    def payload(self, name: str) -> memoryview:
        """The bytes of one payload, not yet compared with its digest.

        Raises:
            FormatError: Reason missing_payload; the index does not list it.
        """
        entry = self.entries.get(name)
        if entry is None:
            known = ", ".join(self.entries) or "none"
            raise FormatError(
                "index", f"no payload called '{name}'", known, reason=Reason.MISSING_PAYLOAD
            )
        return self.data[entry.offset : entry.offset + entry.size]

    def verified(self, name: str) -> memoryview:
        """The bytes of one payload, compared with the recorded digest where there is one.

        Raises:
            FormatError: Reason integrity; they are not what was written.
        """
        payload = self.payload(name)
        recorded = self.entries[name].blake3
        if recorded:
            found = payload_digest(payload)
            if found != recorded:
                raise FormatError(
                    f"payload '{name}'",
                    f"digest {found[:16]}...",
                    f"{recorded[:16]}...",
                    reason=Reason.INTEGRITY,
                )
        return payload


def payload_digest(payload: memoryview | bytes) -> str:
    """BLAKE3 in hex, at about memory speed; two threads where there is enough to do."""
    threads = blake3.AUTO if len(payload) > 1 << 20 else 1
    return blake3(payload, max_threads=threads).hexdigest()


def padding(size: int) -> int:
    """Zero bytes after `size` bytes up to the next boundary."""
    return -size % ALIGNMENT


def encode_head(entries: Sequence[Entry], producer: str) -> bytes:
    """Header, index and padding; its length depends on names and count, not on values.

    Raises:
        ValueError: No entries, or so many that no reader would take the index.
    """
    if not entries:
        raise ValueError("a container holds at least one payload")
    index: dict[str, Writable] = {
        "version": INDEX_VERSION,
        "producer": producer,
        "blob_metadata_map": {
            entry.name: {
                "data_offset": entry.offset,
                "size": entry.size,
                "blake3": entry.blake3.ljust(64, "0"),
                "crc": entry.crc or 0,
            }
            for entry in entries
        },
        CRC_KEY: 0,
    }
    size = len(encode_document(index))
    if size > MAX_INDEX_BYTES:
        raise ValueError(f"an index of {size} bytes is over {MAX_INDEX_BYTES}")
    header = HEADER.pack(MAGIC, VERSION, HEADER.size, HEADER.size, size)
    index[CRC_KEY] = zlib.crc32(header + encode_document(index))
    head = header + encode_document(index)
    return head + bytes(padding(len(head)))


def read_container(data: memoryview) -> Container:
    """Check a container's header, index and padding.

    Payload bytes are not looked at; `Container.verified` does that.

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
    end = start + size
    if ours:
        _require_zeros(data, end, min(end + padding(end), len(data)))
    _check_cover(data, end, sorted(entries.values(), key=lambda e: (e.offset, e.size)))
    producer = index.get("producer")
    return Container(data, producer if isinstance(producer, str) else "", entries)


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
    found = zlib.crc32(encoded[:-9], zlib.crc32(header))
    found = zlib.crc32(bytes(9), found)
    if found != recorded:
        raise FormatError("index.index_crc", f"{found:08x}", str(recorded), reason=Reason.INTEGRITY)
    return True


def _entry(name: str, value: BsonValue, *, ours: bool) -> Entry:
    field = f"index.blob_metadata_map.{name}"
    if not isinstance(value, dict):
        raise FormatError(field, "no document", "{data_offset, size}")
    offset, size = _whole(value, "data_offset", field), _whole(value, "size", field)
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
    return Entry(name, offset, size, digest, crc)


def _whole(value: Mapping[str, BsonValue], key: str, field: str) -> int:
    found = value.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise FormatError(f"{field}.{key}", repr(found)[:40], "a non-negative integer")
    return found


def _check_cover(data: memoryview, start: int, entries: Sequence[Entry]) -> None:
    """Payloads in bounds, not overlapping, without gaps, with zero padding behind each."""
    at = start + padding(start)
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
    if data[start:end] != memoryview(_ZEROS)[: end - start]:
        raise FormatError("padding", f"other than zero in [{start}, {end})", "zeros")

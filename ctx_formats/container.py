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

A container that several models share has more: `head_size` in the index says where, instead of
at the next multiple, the first of the rest begins; `weights_map` lists runs of weights as
`blob_metadata_map` lists payloads, and they lie among them; a payload that needs runs names
them in `weights`, separated by commas.

Integers are little-endian, offsets count from the start of the file, sizes leave padding
out. `blake3` (hex), `crc` and `index_crc` (CRC-32) are ours; ONNX Runtime's OpenVINO EP, whose
format this is, writes and reads the rest. It writes the index twice, the second time shorter,
and leaves the end of the first behind it. Normative text: docs/formats/container.md.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.bson import decode_document, encode_document
from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, field

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
HEAD_KEY = "head_size"
WEIGHTS_KEY = "weights_map"
_ZEROS = bytes(ALIGNMENT)


@dataclass(frozen=True, slots=True)
class Entry:
    """One payload.

    Attributes:
        offset: Bytes from the start of the container.
        size: Bytes without padding.
        blake3: Digest in hex, or "" where the producer records none.
        crc: CRC-32, or None where the producer records none.
        weights: Names of the runs of weights that a payload needs besides.
    """

    name: str
    offset: int
    size: int
    blake3: str = ""
    crc: int | None = None
    weights: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Container:
    """A container whose index was found to cover it exactly.

    Attributes:
        entries: Payloads by partition name.
        weights: Runs of weights that payloads have in common, by name.
    """

    data: memoryview
    producer: str
    entries: Mapping[str, Entry]
    weights: Mapping[str, Entry] = field(default_factory=dict)

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
        _compare_digest(f"payload '{name}'", payload, self.entries[name])
        return payload

    def verify_weights(self, run: str) -> None:
        """Compare a run of weights with its digest.

        Raises:
            FormatError: Reason integrity; they are not what was written.
        """
        entry = self.weights[run]
        data = self.data[entry.offset : entry.offset + entry.size]
        _compare_digest(f"weights '{run}'", data, entry)

    def weights_digest(self, name: str) -> str:
        """One digest, in hex, over those of all runs that a payload needs; "" for none."""
        runs = self.entries[name].weights
        return combined_digest([self.weights[run] for run in runs]) if runs else ""


def combined_digest(entries: Sequence[Entry]) -> str:
    """One digest, in hex, over those of several payloads or runs of weights."""
    return payload_digest("".join(entry.blake3 for entry in entries).encode())


def _compare_digest(what: str, data: memoryview, entry: Entry) -> None:
    if not entry.blake3:
        return
    found = payload_digest(data)
    if found != entry.blake3:
        raise FormatError(
            what,
            f"digest {found[:16]}...",
            f"{entry.blake3[:16]}...",
            reason=Reason.INTEGRITY,
        )


def payload_digest(payload: memoryview | bytes) -> str:
    """BLAKE3 in hex, at about memory speed; two threads where there is enough to do."""
    threads = blake3.AUTO if len(payload) > 1 << 20 else 1
    return blake3(payload, max_threads=threads).hexdigest()


def padding(size: int) -> int:
    """Zero bytes after `size` bytes up to the next boundary."""
    return -size % ALIGNMENT


def encode_head(
    entries: Sequence[Entry],
    producer: str,
    *,
    weights: Sequence[Entry] = (),
    head_size: int | None = None,
) -> bytes:
    """Header, index and padding; its length depends on names and count, not on values.

    Args:
        entries: Payloads.
        producer: Recorded in the index.
        weights: Runs of weights.
        head_size: Bytes to fill, where payloads were written before their number was known;
            a multiple of 65,536.

    Raises:
        ValueError: No entries, or so many that the index does not fit.
    """
    if not entries:
        raise ValueError("a container holds at least one payload")
    index: dict[str, Writable] = {
        "version": INDEX_VERSION,
        "producer": producer,
        "blob_metadata_map": {entry.name: _listed(entry) for entry in entries},
    }
    if weights:
        index[WEIGHTS_KEY] = {entry.name: _listed(entry) for entry in weights}
    if head_size is not None:
        index[HEAD_KEY] = head_size
    index[CRC_KEY] = 0
    size = len(encode_document(index))
    limit = MAX_INDEX_BYTES if head_size is None else head_size - HEADER.size
    if size > limit:
        raise ValueError(f"an index of {size} bytes is over {limit}")
    header = HEADER.pack(MAGIC, VERSION, HEADER.size, HEADER.size, size)
    index[CRC_KEY] = zlib.crc32(header + encode_document(index))
    head = header + encode_document(index)
    return head + bytes((head_size or len(head) + padding(len(head))) - len(head))


def _listed(entry: Entry) -> dict[str, Writable]:
    listed: dict[str, Writable] = {
        "data_offset": entry.offset,
        "size": entry.size,
        "blake3": entry.blake3.ljust(64, "0"),
        "crc": entry.crc or 0,
    }
    return {**listed, "weights": ",".join(entry.weights)} if entry.weights else listed


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
    """Where payloads begin, the index having ended at `end`."""
    nearest = end + padding(end)
    given = index.get(HEAD_KEY) if ours else None
    if given is None:
        return nearest
    if type(given) is not int or given < nearest or given % ALIGNMENT or given > MAX_INDEX_BYTES:
        raise FormatError(f"index.{HEAD_KEY}", repr(given)[:40], f"{nearest} or more, aligned")
    return given


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
    needed = value.get("weights", "")
    if not isinstance(needed, str):
        raise FormatError(f"{field}.weights", repr(needed)[:40], "names separated by commas")
    return Entry(name, offset, size, digest, crc, tuple(filter(None, needed.split(","))))


def _whole(value: Mapping[str, BsonValue], key: str, field: str) -> int:
    found = value.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise FormatError(f"{field}.{key}", repr(found)[:40], "a non-negative integer")
    return found


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
        part = data[at : min(at + ALIGNMENT, end)]
        if part != memoryview(_ZEROS)[: len(part)]:
            raise FormatError("padding", f"other than zero in [{start}, {end})", "zeros")

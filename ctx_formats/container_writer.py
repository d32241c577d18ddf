"""Writes an OVEP_BIN container while its payloads are still being produced."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from blake3 import blake3

from ctx_formats.bson import encode_document
from ctx_formats.container import (
    CRC_KEY,
    HEAD_KEY,
    HEADER,
    INDEX_VERSION,
    MAGIC,
    MAX_INDEX_BYTES,
    VERSION,
    WEIGHTS_KEY,
    Entry,
    padding,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_formats.bson import Writable


def write_container(
    out: BinaryIO,
    payloads: Sequence[tuple[str, Callable[[BinaryIO], None]]],
    producer: str,
) -> tuple[Entry, ...]:
    """Write a container; equal payloads are stored once.

    Args:
        out: Seekable, empty; not closed.
        payloads: Partition names, and what streams each payload into a file object.
        producer: Recorded in the index.

    Returns:
        The index entry of each payload, in the order of `payloads`.

    Raises:
        ValueError: There is no payload, or two have one name.
    """
    names = [name for name, _ in payloads]
    if len(set(names)) != len(names):
        raise ValueError(f"two payloads have one name: {sorted(names)}")
    head = encode_head([Entry(name, 0, 0) for name in names], producer)
    out.write(head)
    at = len(head)
    entries: list[Entry] = []
    known: dict[tuple[str, int], Entry] = {}
    for name, produce in payloads:
        sink = _Sink(out)
        produce(sink)  # type: ignore[arg-type] # the part of BinaryIO that exporters use
        digest = sink.digest.hexdigest()
        twin = known.get((digest, sink.size))
        if twin is not None:
            out.seek(at)
            out.truncate()
            entries.append(Entry(name, twin.offset, twin.size, digest, sink.crc))
            continue
        entry = Entry(name, at, sink.size, digest, sink.crc)
        known[digest, sink.size] = entry
        entries.append(entry)
        fill = padding(at + sink.size)
        out.write(bytes(fill))
        at += sink.size + fill
    out.seek(0)
    out.write(encode_head(entries, producer))
    out.seek(at)
    return tuple(entries)


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
        "blob_metadata_map": {entry.name: _index_entry(entry) for entry in entries},
    }
    if weights:
        index[WEIGHTS_KEY] = {entry.name: _index_entry(entry) for entry in weights}
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


def _index_entry(entry: Entry) -> dict[str, Writable]:
    listed: dict[str, Writable] = {
        "data_offset": entry.offset,
        "size": entry.size,
        "blake3": entry.blake3.ljust(64, "0"),
        "crc": entry.crc or 0,
    }
    return {**listed, "weights": ",".join(entry.weights)} if entry.weights else listed


def index_bytes(entry: Entry) -> int:
    """How much a payload or a run of weights adds to the index."""
    return len(encode_document({entry.name: _index_entry(entry)})) - len(encode_document({}))


@dataclass(slots=True)
class _Sink:
    """Passes bytes on, counting and digesting them."""

    out: BinaryIO
    size: int = 0
    crc: int = 0
    digest: blake3 = field(default_factory=blake3)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        view = memoryview(data).cast("B")
        self.out.write(view)
        self.digest.update(view)
        self.crc = zlib.crc32(view, self.crc)
        self.size += len(view)
        return len(view)

    def flush(self) -> None:
        self.out.flush()

    def writable(self) -> bool:
        return True

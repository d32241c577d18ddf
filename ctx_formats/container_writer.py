"""Writes a container while its payloads are still being produced."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from blake3 import blake3

from ctx_formats.container import Entry, encode_head, padding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
        Where each payload came to lie, in the order given.

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

"""A container that several models write together, one after the other.

What was written never moves, so a payload may hold offsets of weights in the file before the
last model is compiled. The head is written at the end, into space left for it.
"""

from __future__ import annotations

import io
import mmap
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from ctx_formats.container import HEADER, Entry, combined_digest, padding, payload_digest
from ctx_formats.container_writer import encode_head, index_bytes
from ctx_formats.mapped_file import path_of_descriptor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD_SIZE = 1 << 18
"""Bytes left for the head: an index of about 1,000 partitions. A hole in the file, where the file
system has such; but it is copied, sent and packed as zeros."""

INDEX_ROOM = HEAD_SIZE - HEADER.size - (1 << 10)
"""Of it for payloads and runs; the rest is for the index's own fields."""

WEIGHT_ALIGNMENT = 512
"""In bytes: the alignment of memory that devices read in place (OpenCL, NVIDIA: 512)."""


class NoRoomError(ValueError):
    """The index of a shared container is full."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of the container to go back to."""

    end: int
    payloads: int
    runs: int
    index: int


@dataclass(slots=True)
class _Run:
    """Weights that were added between two payloads, still open."""

    offset: int
    size: int = 0


class SharedContainerWriter:
    """Weights and payloads appended to a file; equal weights are stored once."""

    def __init__(self, out: BinaryIO, path: Path) -> None:
        """`out` is an empty, readable file at `path`, which is not closed."""
        self._out = out
        self._path = path
        self._end = HEAD_SIZE
        self._payloads: list[Entry] = []
        self._runs: list[Entry] = []
        self._places: dict[tuple[str, int], tuple[int, str]] = {}
        self._open: _Run | None = None
        self._used: dict[str, None] = {}
        self._index = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the payloads that have been added."""
        return tuple(entry.name for entry in self._payloads)

    def add_weights(self, data: memoryview) -> int:
        """Store weights, unless they are there.

        Returns:
            Their offset in bytes from the start of the file; a multiple of 512.
        """
        key = (payload_digest(data), len(data))
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = (self._append(data), self._run_name)
        self._used[known[1]] = None
        return known[0]

    def add_payload(self, name: str, produce: Callable[[BinaryIO], bool]) -> Entry | None:
        """Store a payload and the weights that `produce` adds meanwhile.

        Args:
            name: Of the partition.
            produce: Writes the payload; false takes back all that it wrote and added.

        Returns:
            Its index entry; None if `produce` returned false.

        Raises:
            ValueError: A payload has this name already.
            NoRoomError: The index is full.
        """
        if name in self.names:
            raise ValueError(f"two payloads have one name: {name}")
        start = self.mark()
        self._used = {}
        memory = io.BytesIO()
        if not produce(memory):
            self.rewind(start)
            return None
        self._close_run()
        payload = memory.getvalue()
        entry = Entry(
            name,
            self._end,
            len(payload),
            payload_digest(payload),
            zlib.crc32(payload),
            tuple(self._used),
        )
        self._count(entry)
        self._write(payload)
        self._pad()
        self._payloads.append(entry)
        return entry

    def weights_digest(self, entry: Entry) -> str:
        """One digest, in hex, over those of the runs that a payload needs."""
        return combined_digest([self._runs[int(name)] for name in entry.weights])

    def view(self) -> memoryview:
        """Everything so far, mapped copy-on-write; offsets are those of `add_weights`."""
        self._out.flush()
        return memoryview(mmap.mmap(self._out.fileno(), self._end, access=mmap.ACCESS_COPY))

    @property
    def path(self) -> str:
        """Under which this process finds the file; all that was added is in it."""
        self._out.flush()
        return path_of_descriptor(self._out.fileno(), self._path)

    def mark(self) -> Mark:
        """The present state, between two payloads."""
        return Mark(self._end, len(self._payloads), len(self._runs), self._index)

    def rewind(self, mark: Mark) -> None:
        """Forget what was added since."""
        self._open = None
        self._used = {}
        self._end, self._index = mark.end, mark.index
        del self._payloads[mark.payloads :]
        del self._runs[mark.runs :]
        self._places = {k: place for k, place in self._places.items() if place[0] < mark.end}
        self._out.seek(mark.end)
        self._out.truncate()

    def finish(self, producer: str) -> tuple[Entry, ...]:
        """Write header and index, which completes the container.

        Raises:
            ValueError: No payload was added.
        """
        head = encode_head(self._payloads, producer, weights=self._runs, head_size=HEAD_SIZE)
        self._out.seek(0)
        self._out.write(head)
        self._out.seek(self._end)
        return tuple(self._payloads)

    @property
    def _run_name(self) -> str:
        return str(len(self._runs))

    def _append(self, data: memoryview) -> int:
        if self._open is None:
            self._open = _Run(self._end)
        fill = -self._end % WEIGHT_ALIGNMENT
        self._write(bytes(fill))
        at = self._end
        self._write(data)
        self._open.size = self._end - self._open.offset
        return at

    def _close_run(self) -> None:
        if self._open is None:
            return
        self._out.flush()
        with self.view() as view:
            data = view[self._open.offset : self._open.offset + self._open.size]
            digest, crc = payload_digest(data), zlib.crc32(data)
            data.release()
        run = Entry(self._run_name, self._open.offset, self._open.size, digest, crc)
        self._count(run)
        self._pad()
        self._runs.append(run)
        self._open = None

    def _count(self, entry: Entry) -> None:
        self._index += index_bytes(entry)
        if self._index > INDEX_ROOM:
            raise NoRoomError(
                f"no room for '{entry.name[:80]}' in the index of a shared container: "
                f"{self._index} bytes, at most {INDEX_ROOM}; compile fewer models into one"
            )

    def _write(self, data: bytes | memoryview) -> None:
        self._out.seek(self._end)
        self._out.write(data)
        self._end += len(data)

    def _pad(self) -> None:
        self._write(bytes(padding(self._end)))

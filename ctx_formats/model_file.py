"""A model file in private memory, with separate memory for each long run of bytes.

Weights and embedded payloads are nearly all of a model file. Each that is long is read into memory
that begins with it: it is aligned whatever its place in the file, no copy follows, and it is given
back when its last user lets go of it, whoever else uses the rest of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.container import new_digest
from ctx_formats.errors import FormatError
from ctx_formats.stamped_file import StampedFile, private_memory
from ctx_formats.wire import delimited_tag, read_field_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from blake3 import blake3


APART_FROM = 1 << 18
"""Smallest run, in bytes, that gets its own memory."""
WINDOW = 1 << 14
"""Bytes between the runs that are read at once."""
_HEADER = 20
"""Bytes of the longest tag and the longest length."""

_MODEL, _GRAPH, _NODE, _ATTRIBUTE, _TENSOR, _SPARSE, _RUN = range(7)
_INSIDE: Mapping[int, Mapping[int, int]] = {
    _MODEL: {delimited_tag(7): _GRAPH},
    _GRAPH: {
        delimited_tag(1): _NODE,
        delimited_tag(5): _TENSOR,
        delimited_tag(15): _SPARSE,
    },
    _NODE: {delimited_tag(5): _ATTRIBUTE},
    _ATTRIBUTE: {
        delimited_tag(4): _RUN,
        delimited_tag(5): _TENSOR,
        delimited_tag(6): _GRAPH,
        delimited_tag(10): _TENSOR,
        delimited_tag(11): _GRAPH,
        delimited_tag(22): _SPARSE,
        delimited_tag(23): _SPARSE,
    },
    _TENSOR: {delimited_tag(9): _RUN},
    _SPARSE: {delimited_tag(1): _TENSOR, delimited_tag(2): _TENSOR},
}
"""Message type of each field that can contain a long run of bytes, by message (onnx.proto)."""


class ModelBytes:
    """A ModelProto in memory that nobody else writes to.

    Attributes:
        view: All bytes, but zeros where `runs` has them.
        runs: Long runs of bytes by where they begin.
    """

    def __init__(self, view: memoryview, runs: Mapping[int, memoryview] | None = None) -> None:
        """For the arguments see the class."""
        self.view = view
        self.runs = dict(runs or {})
        self._size = len(view)

    def __len__(self) -> int:
        """Bytes of the model."""
        return self._size

    def outline(self) -> ModelBytes:
        """The size without the bytes."""
        outline = ModelBytes(memoryview(b""))
        outline._size = self._size
        return outline

    def pieces(self) -> Iterator[memoryview]:
        """All bytes in their order."""
        at = 0
        for start in sorted(self.runs):
            if at < start:
                yield self.view[at:start]
            yield self.runs[start]
            at = start + len(self.runs[start])
        if at < len(self.view):
            yield self.view[at:]


def digest_pieces(pieces: Iterable[memoryview]) -> blake3:
    """BLAKE3 over all bytes."""
    digest = new_digest()
    for piece in pieces:
        digest.update(piece)
    return digest


def read_model_file(file: StampedFile, *, runs: bool = True) -> ModelBytes:
    """The bytes of a model file; the caller asks afterwards whether it changed meanwhile.

    Args:
        file: Open.
        runs: Whether long runs are read; without them their bytes are zeros.

    Raises:
        FileChangedError: It has become shorter.
        FormatError: It cannot be read.
        MemoryError: There is not enough memory.
    """
    size = file.stamp.size
    if size < APART_FROM:
        view = memoryview(bytearray(size))
        file.read_into(view, 0)
        return ModelBytes(view)
    reading = _Reading(file, runs=runs)
    reading.read()
    return ModelBytes(reading.view, reading.runs)


class _Reading:
    """A walk over the messages that may contain long runs; all else is read as it comes.

    Where the bytes are not a ModelProto the walk goes on behind the message that is wrong; whoever
    decodes it finds the same mistake.
    """

    def __init__(self, file: StampedFile, *, runs: bool) -> None:
        self._file = file
        self._with_runs = runs
        self._filled = 0
        self.view = private_memory(file.stamp.size, sparse=True)
        self.runs: dict[int, memoryview] = {}

    def read(self) -> None:
        """Fill `view` and `runs`; a stack, since messages may nest as deep as the file is long."""
        stack = [(_MODEL, len(self.view))]
        at = 0
        while stack:
            kind, end = stack[-1]
            if at >= end:
                stack.pop()
                continue
            self._fill(min(at + _HEADER, end))
            if kind == _ATTRIBUTE:
                from ctx_formats.attribute_runs import skip_run  # noqa: PLC0415 - lazy: rare

                stop = skip_run(self.view, at, min(self._filled, end))
                if stop > at:
                    at = stop
                    continue
            try:
                tag, start, stop = read_field_span(self.view, at, end)
            except FormatError:
                at = end
                continue
            inside = _INSIDE[kind].get(tag) if stop - start >= APART_FROM else None
            if inside is None:
                self._fill(stop)
            elif inside == _RUN:
                self._set_apart(start, stop)
            else:
                stack.append((inside, stop))
                stop = start
            at = stop

    def _fill(self, end: int) -> None:
        if end <= self._filled:
            return
        start, self._filled = self._filled, min(max(end, self._filled + WINDOW), len(self.view))
        self._file.read_into(self.view[start : self._filled], start)

    def _set_apart(self, start: int, stop: int) -> None:
        if self._with_runs:
            run = private_memory(stop - start)
            known = max(min(self._filled, stop) - start, 0)
            run[:known] = self.view[start : start + known]
            self._file.read_into(run[known:], start + known)
            self.runs[start] = run
        self._filled = max(self._filled, stop)

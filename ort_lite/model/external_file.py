"""The parts of a data file that a model uses, in private memory."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from ctx_formats.errors import FileChangedError
from ctx_formats.mapped_file import MappedFile
from ctx_formats.stamped_file import StampedFile, private_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctx_formats.mapped_file import FileStamp

APART_FROM = 1 << 18
"""Bytes from which on a tensor has memory of its own, which begins with it."""
TOGETHER = 1 << 20
"""Bytes of memory that smaller tensors have in common, if there are as many."""
GAP = 1 << 12
"""Bytes between two small tensors that are read rather than skipped."""
SKIPPED_FROM = 1 << 16
"""Bytes that no tensor uses and that are not read unless somebody asks for the whole file."""
CHUNK = 1 << 20


class ExternalFile:
    """One version of a data file; nothing is read before `read`.

    Attributes:
        path: The file.
        name: The path under which the model finds it, which symlinks may be in.
    """

    def __init__(self, path: str, name: str, *, mapped: bool = False) -> None:
        """Open it.

        Args:
            path: The file.
            name: The path under which the model finds it.
            mapped: Whether it is mapped rather than read.

        Raises:
            FormatError: As `StampedFile`; it is a symlink.
        """
        self._file = StampedFile(path, follow_symlink=False)
        self.path = path
        self.name = name
        self._mapped = mapped
        self._starts: list[int] = []
        self._regions: list[memoryview] = []

    @property
    def stamp(self) -> FileStamp:
        """The version of the file that was opened."""
        return self._file.stamp

    def __len__(self) -> int:
        """Bytes of the file."""
        return self.stamp.size

    def read(self, spans: Iterable[tuple[int, int]]) -> None:
        """Read what tensors use, each byte once, however many use it, and short gaps between.

        Args:
            spans: Where tensors begin and end, inside the file.

        Raises:
            FileChangedError: It has become shorter.
            FormatError: It cannot be read.
            MemoryError: There is not enough memory.
        """
        if self._mapped:
            with MappedFile(self.path, follow_symlink=False) as file:
                if file.stamp != self.stamp:
                    raise FileChangedError(self.path)
                self._starts, self._regions = [0], [file.view]
            return
        at = 0
        for start, stop in _merge_spans(spans):
            if start - at <= SKIPPED_FROM:
                self._keep(at, start)
            self._keep(start, stop)
            at = stop
        if len(self) - at <= SKIPPED_FROM:
            self._keep(at, len(self))

    def _keep(self, start: int, stop: int) -> None:
        if start < stop:
            region = private_memory(stop - start)
            self._file.read_into(region, start)
            self._starts.append(start)
            self._regions.append(region)

    def view(self, start: int, stop: int) -> memoryview:
        """Bytes that were read."""
        if start == stop:
            return memoryview(b"")
        at = bisect_right(self._starts, start) - 1
        first = self._starts[at]
        return self._regions[at][start - first : stop - first]

    def pieces(self) -> Iterator[memoryview]:
        """All bytes of the file in their order; long runs that no tensor uses are read now.

        Raises:
            FileChangedError: The file is no longer the one that was opened.
        """
        at = 0
        for start, region in zip(self._starts, self._regions, strict=True):
            yield from self._pieces_between(at, start)
            yield region
            at = start + len(region)
        yield from self._pieces_between(at, len(self))
        self._file.require_unchanged()

    def require_unchanged(self, *, in_place: bool) -> None:
        """Compare the file with what it was; see StampedFile."""
        self._file.require_unchanged(in_place=in_place)

    def close(self) -> None:
        """Close the file, and let go of what was read; views that others hold stay valid."""
        self._file.close()
        self._starts, self._regions = [], []

    def _pieces_between(self, start: int, stop: int) -> Iterator[memoryview]:
        for at in range(start, stop, CHUNK):
            chunk = memoryview(bytearray(min(CHUNK, stop - at)))
            self._file.read_into(chunk, at)
            yield chunk


def _merge_spans(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans without overlaps, small ones that are close together as one."""
    span: tuple[int, int] | None = None
    for start, stop in sorted(set(spans)):
        if start == stop:
            continue
        if span is None:
            span = start, stop
        elif start < span[1] or _belong_together(span, start, stop):
            span = span[0], max(span[1], stop)
        else:
            yield span
            span = start, stop
    if span is not None:
        yield span


def _belong_together(span: tuple[int, int], start: int, stop: int) -> bool:
    small = stop - start < APART_FROM and span[1] - span[0] < TOGETHER
    return small and start - span[1] <= GAP

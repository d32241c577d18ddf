"""A protobuf message under construction, as pieces whose bulk is never copied."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.wire import delimited_tag, fixed32_tag, varint_tag, write_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

COPIED = 1 << 12
"""Smaller data is copied into the running piece: fewer pieces are faster than fewer copies."""
_ONE_BYTE = 0x80
"""Varints below are one byte."""


class Segments:
    """Pieces of a message and how many bytes they are together."""

    def __init__(self) -> None:
        self._done: list[bytes | memoryview] = []
        self._running = bytearray()
        self.size = 0

    @property
    def pieces(self) -> list[bytes | memoryview]:
        """Everything written so far, in order."""
        return [*self._done, bytes(self._running)] if self._running else list(self._done)

    def integer(self, number: int, value: int, *, always: bool = False) -> None:
        """A varint field; 0 is left out unless `always`."""
        if value or always:
            self._put(write_varint(varint_tag(number)) + write_varint(value))

    def integers(self, number: int, values: Sequence[int]) -> None:
        """A packed repeated varint field; left out when empty."""
        if values:
            texts = {value: write_varint(value) for value in set(values)}
            self.data(number, b"".join([texts[value] for value in values]))

    def single(self, number: int, value: float) -> None:
        """Append a field of type float."""
        self._put(write_varint(fixed32_tag(number)) + pack_floats([value]))

    def text(self, number: int, value: str, *, always: bool = False) -> None:
        """A string field; "" is left out unless `always`."""
        if value or always:
            encoded = value.encode()
            self._put(_head(number, len(encoded)) + encoded)

    def data(self, number: int, value: bytes | memoryview) -> None:
        """A bytes field; a large one is kept as it is, not copied."""
        if isinstance(value, memoryview) and (value.format != "B" or value.ndim != 1):
            value = value.cast("B")  # `len` counts elements otherwise
        size = len(value)
        if size < COPIED:
            self._put(_head(number, size) + value)
        else:
            self._put(_head(number, size))
            self._append(value)

    def message(self, number: int, inner: Segments) -> None:
        """Append a field that is a nested message."""
        self._put(_head(number, inner.size))
        if not inner._done:
            self._put(inner._running)
            return
        for piece in inner.pieces:
            if len(piece) < COPIED:
                self._put(piece)
            else:
                self._append(piece)

    def _put(self, value: bytes | bytearray | memoryview) -> None:
        self._running += value
        self.size += len(value)

    def _append(self, value: bytes | memoryview) -> None:
        if self._running:
            self._done.append(bytes(self._running))
            self._running = bytearray()
        self._done.append(value)
        self.size += len(value)


def _head(number: int, size: int) -> bytes:
    """Tag and length that precede `size` bytes of a delimited field."""
    tag = delimited_tag(number)
    if tag < _ONE_BYTE and size < _ONE_BYTE:  # nearly always
        return bytes((tag, size))
    return write_varint(tag) + write_varint(size)


def pack_floats(values: Sequence[float]) -> bytes:
    """Little-endian IEEE singles.

    Raises:
        FormatError: One is too large for a single.
    """
    try:
        return struct.pack(f"<{len(values)}f", *values)
    except OverflowError as exc:
        raise FormatError("float", repr(max(values, key=abs)), "a 32-bit float") from exc

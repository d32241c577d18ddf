"""Arguments of the callbacks for EP context data, with onnxruntime's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.context.keys import MAX_DATA_SIZE
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable


class OrtEpContextData:
    """A payload that a write callback is to keep; valid during the call."""

    def __init__(self, data: memoryview) -> None:
        self._data = data

    @property
    def size(self) -> int:
        """Size of the payload in bytes."""
        return len(self._data)

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """A copy of `length` bytes from `offset`; of all that follow if it is None.

        Raises:
            InvalidArgument: The range is not inside the payload.
        """
        end = self.size if length is None else offset + length
        if not 0 <= offset <= end <= self.size:
            raise InvalidArgument(
                f"read of [{offset}, {end}) from EP context data of {self.size} bytes"
            )
        return bytes(self._data[offset:end])


class OrtEpContextDataBuffer:
    """The buffer that a read callback fills: `allocate` once, then `write`."""

    def __init__(self, max_size: int = MAX_DATA_SIZE) -> None:
        self._max_size = max_size
        self._data: bytearray | None = None

    @property
    def max_size(self) -> int:
        """Largest size in bytes that `allocate` accepts."""
        return self._max_size

    @property
    def size(self) -> int:
        """Bytes allocated; 0 before `allocate`."""
        return len(self._data) if self._data is not None else 0

    @property
    def is_allocated(self) -> bool:
        """Whether `allocate` was called."""
        return self._data is not None

    def allocate(self, size: int) -> None:
        """Make room for the whole payload.

        Raises:
            InvalidArgument: Called twice, or the size is negative or over `max_size`.
        """
        if self._data is not None:
            raise InvalidArgument("EP context data buffer is allocated already")
        if not 0 <= size <= self._max_size:
            raise InvalidArgument(
                f"EP context data of {size} bytes, at most {self._max_size} are allowed"
            )
        self._data = bytearray(size)

    def write(self, data: bytes | bytearray | memoryview, offset: int = 0) -> None:
        """Copy `data` to `offset`.

        Raises:
            InvalidArgument: Not allocated, or it does not fit.
        """
        if self._data is None or offset < 0 or offset + len(data) > len(self._data):
            raise InvalidArgument(
                f"write of {len(data)} bytes at {offset} into EP context data of {self.size} bytes"
            )
        self._data[offset : offset + len(data)] = data

    def take(self) -> memoryview:
        """The data that the callback wrote.

        Raises:
            InvalidArgument: It never called `allocate`.
        """
        if self._data is None:
            raise InvalidArgument("the EP context data read callback allocated nothing")
        return memoryview(self._data)


if TYPE_CHECKING:
    WriteFunc = Callable[[str, OrtEpContextData], None]
    ReadFunc = Callable[[str, OrtEpContextDataBuffer], None]

"""The open device of one execution provider, with counts of the copies that runs make."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from eps.opencl.runtime.device import share_context

if TYPE_CHECKING:
    from eps.opencl.cl.objects import Context, Queue
    from eps.opencl.runtime.arena import SharedArena
    from eps.opencl.runtime.device import ListedDevice
    from ort_lite.ep import CopyCounts


class CopyCounter:
    """Counts copies of whole tensors; several threads may."""

    __slots__ = ("_lock", "_numbers")

    def __init__(self) -> None:
        """Start at 0."""
        self._lock = threading.Lock()
        self._numbers = [0] * 6

    def count_to_device(self, size: int) -> None:
        """Count a copy of `size` bytes from host memory."""
        self._count(0, size)

    def count_to_host(self, size: int) -> None:
        """Count a copy of `size` bytes to host memory."""
        self._count(1, size)

    def count_on_device(self, size: int) -> None:
        """Count a copy of `size` bytes within the device."""
        self._count(2, size)

    def _count(self, kind: int, size: int) -> None:
        with self._lock:
            self._numbers[kind] += 1
            self._numbers[kind + 3] += size

    def read(self) -> CopyCounts:
        """The counts so far."""
        from ort_lite.ep import CopyCounts  # noqa: PLC0415 - lazy: rare

        with self._lock:
            to_device, to_host, on_device, sent, fetched, moved = self._numbers
        return CopyCounts(
            to_device=to_device,
            to_host=to_host,
            on_device=on_device,
            bytes_to_device=sent,
            bytes_to_host=fetched,
            bytes_on_device=moved,
        )


class DeviceAccess:
    """The device that one execution provider runs on.

    Attributes:
        listed: The device.
        context: Shared with other sessions, or the user's.
        queue: The user's, to which runs are enqueued; None for a queue of each program.
        copies: Copies of tensors that runs make.
        arena: Shared with other sessions; None where each program has its own.
    """

    def __init__(
        self, listed: ListedDevice, context: Context | None = None, queue: Queue | None = None
    ) -> None:
        """Open the device.

        Args:
            listed: The device.
            context: The user's; None for that of the process.
            queue: The user's, of that context; None for a queue of each program.

        Raises:
            EPFail: The driver does not let it.
        """
        self.listed = listed
        self.context = share_context(listed) if context is None else context
        self.queue = queue
        self.copies = CopyCounter()
        self.arena: SharedArena | None = None

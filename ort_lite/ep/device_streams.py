"""Streams: copies that a device makes in order while the program goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep.device_tensors import DeviceMemory
    from ort_lite.ep.interface import Value


class DeviceStream(ABC):
    """A queue of a device: its copies are made one after another, and after those enqueued before.

    Attributes:
        memory: The memory whose tensors it copies.
    """

    memory: DeviceMemory

    @property
    @abstractmethod
    def handle(self) -> int:
        """The SDK's handle of the queue, which programs and provider options may use."""

    @abstractmethod
    def copy(self, source: Value, destination: Value) -> None:
        """Enqueue a copy; every later use of a tensor of `memory` waits for it.

        Args:
            source: A tensor that `memory` reaches, or a contiguous array, which the program
                must not change before the copy is made; kept alive until then.
            destination: The same, of the same shape and type; one of both is a tensor.

        Raises:
            EPFail: The device failed.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything that was enqueued has been done.

        Raises:
            EPFail: The device failed.
        """


@runtime_checkable
class SupportsStreams(Protocol):
    """A factory that finds memory and queues of the devices that it lists."""

    def find_memory_of(self, options: Mapping[str, str]) -> DeviceMemory | None:
        """The memory of the device that provider options open; None for host memory.

        Raises:
            EPFail: The device cannot be opened.
        """
        ...

    def open_stream(self, options: Mapping[str, str]) -> DeviceStream | None:
        """A new queue of that device; None where copies have been made when they return.

        Raises:
            EPFail: The device cannot be opened, or the SDK creates no queue.
        """
        ...

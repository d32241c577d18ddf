"""Bytes of memory that a compiled partition holds, as its execution provider knows them."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import WeightsFile
    from ort_lite.model.graph import Graph


class ByteCounter:
    """Bytes of memory that are allocated in one place; several threads may count.

    Attributes:
        live: Allocated now.
        peak: The most that were allocated at once.
    """

    __slots__ = ("_lock", "live", "peak")

    def __init__(self) -> None:
        """Nothing is allocated yet."""
        self.live = self.peak = 0
        self._lock = Lock()

    def add(self, change: int) -> None:
        """Count memory that is allocated, or given back where the number is negative."""
        with self._lock:
            self.live += change
            self.peak = max(self.peak, self.live)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Bytes that a partition holds between runs; None where the SDK does not report them.

    Attributes:
        weights: Of weights, on the device or mapped.
        arena: Of memory for values inside the partition and for copies of inputs and outputs.
        shared_arena: Of an arena that all partitions of the EP use in turns, also those of other
            sessions; `arena` and `peak` are without it.
        shared_peak: The most that it had.
        peak: The most that both had at once.
        note: Parts of the figures, or why there are none; "" where there is nothing to say.
    """

    weights: int | None
    arena: int | None
    peak: int | None
    note: str = ""
    shared_arena: int = 0
    shared_peak: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFigures:
    """Bytes of a device's memory in this process, of all sessions and tensors.

    Attributes:
        live: Allocated now.
        peak: The most that were allocated at once.
        total: Size of the memory; 0 where the driver does not report it.
    """

    live: int
    peak: int
    total: int


@runtime_checkable
class SupportsRoomCheck(Protocol):
    """An EP that knows how much memory partitions need before it allocates any."""

    def require_room(self, graphs: Sequence[Graph]) -> None:
        """Refuse partitions that do not fit on the device together; `compile` gets them next.

        Args:
            graphs: Of the partitions, as `compile` will get them.

        Raises:
            EPFail: They do not fit; says what they need, and what there is.
        """
        ...

    def require_room_to_import(
        self, payloads: Sequence[tuple[memoryview, WeightsFile | None]]
    ) -> None:
        """As `require_room`, for payloads that `import_model` and `import_shared` get next.

        A payload that is damaged is left out: its import says what is wrong with it.
        """
        ...


@runtime_checkable
class SupportsSharedArena(Protocol):
    """An EP whose sessions can use one memory for values inside models, in turns."""

    def share_arena(self) -> None:
        """Have what is compiled and imported from now on use the shared memory of the device."""
        ...


@runtime_checkable
class SupportsMemoryReport(Protocol):
    """A compiled partition that knows how much memory it holds."""

    def memory_use(self) -> MemoryUse:
        """The memory that it holds now; all 0 after `release`."""
        ...


@runtime_checkable
class SupportsDeviceFigures(Protocol):
    """An EP that counts what it allocates on its device."""

    def device_figures(self) -> DeviceFigures:
        """Memory of its device."""
        ...

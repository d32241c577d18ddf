"""Programs for new shapes that are added to payloads: abilities of partitions and of their EPs."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ort_lite.ep.interface import CompiledPartition


@runtime_checkable
class SupportsNewShapes(Protocol):
    """A compiled partition that can add what it compiled for new shapes to its payload later.

    Its EP is a `SupportsPayloadUpdate`. Nothing is held back before `on_new_shapes` was called.
    """

    def on_new_shapes(self, callback: Callable[[CompiledPartition], None]) -> None:
        """Have `callback` called with the partition each time it has compiled for new shapes.

        The thread is the one that compiled; shapes that the payload has already are not new.
        """
        ...

    def drop_new_shapes(self) -> None:
        """Let go of what is held back for `SupportsPayloadUpdate.export_updated`."""
        ...


@runtime_checkable
class SupportsPayloadUpdate(Protocol):
    """An EP that adds to a payload what a partition has compiled since; see SupportsNewShapes."""

    def export_updated(
        self, compiled: CompiledPartition, payload: memoryview, out: BinaryIO
    ) -> bool:
        """Write `payload` with the new programs of `compiled` to `out`; they are not new after it.

        Args:
            compiled: A SupportsNewShapes of this EP.
            payload: Written by any instance of the EP for the same partition; the one that
                `compiled` was imported from, or what another process has made of it meanwhile.
            out: Gets the new payload.

        Returns:
            False, with nothing written, where there is nothing new.

        Raises:
            InvalidGraph: `payload` is not one that can be added to.
            EPFail: The device failed.
        """
        ...

"""What an EP does that keeps weights which several partitions have in common once."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from ort_lite.execution_provider import CompiledPartition, PartitionIo


class WeightsSink(Protocol):
    """Weights on their way into a shared container."""

    def add_weights(self, data: memoryview) -> int:
        """Store weights, unless they are there; their offset in bytes, which is final."""
        ...

    def view(self) -> memoryview:
        """All weights so far at their offsets, mapped copy-on-write."""
        ...

    @property
    def path(self) -> str:
        """The same as a file, for SDKs that map weights themselves."""
        ...


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """Weights of a shared container that passed their digest checks.

    Attributes:
        data: The whole container, mapped; offsets of weights count from its start.
        path: The same as a file, for SDKs that map it themselves. Valid during the import.
    """

    data: memoryview
    path: str


@runtime_checkable
class SupportsWeightSharing(Protocol):
    """An EP whose compiled form can refer to weights that lie beside it."""

    def export_shared(
        self, compiled: CompiledPartition, weights: WeightsSink, out: BinaryIO
    ) -> bool:
        """Write the compiled form to `out`, its weights to `weights`.

        Returns:
            False where it cannot be taken apart; the core then stores `export_model`'s form,
            and drops what was added.
        """
        ...

    def import_shared(
        self, payload: memoryview, weights: WeightsFile, io: PartitionIo
    ) -> CompiledPartition:
        """Load what `export_shared` wrote; otherwise as `import_model`."""
        ...

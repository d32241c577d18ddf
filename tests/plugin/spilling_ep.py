"""The example EP with working memory that its contexts have in common, as QNN's spill-fill."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from example_ep import FACTORY as EXAMPLE
from example_ep.provider import ExampleExecutionProvider, ExamplePartition

if TYPE_CHECKING:
    from ort_lite.ep import CompiledPartition, Probe


class SpillingExecutionProvider(ExampleExecutionProvider):
    """A context needs as much working memory as its constants have bytes."""

    name: ClassVar[str] = "SpillingExecutionProvider"
    told: ClassVar[list[tuple[str, int]]] = []
    """What instances were told, in order: sizes reserved, and constants of what was imported."""

    def max_size(self, compiled: CompiledPartition) -> int:
        return needed(compiled)

    def reserve(self, max_size: int) -> None:
        self.told.append(("reserve", max_size))

    def import_model(self, payload: memoryview, io: Any) -> CompiledPartition:
        return self._noted(super().import_model(payload, io))

    def import_shared(self, payload: memoryview, weights: Any, io: Any) -> CompiledPartition:
        return self._noted(super().import_shared(payload, weights, io))

    def _noted(self, partition: CompiledPartition) -> CompiledPartition:
        self.told.append(("import", needed(partition)))
        return partition


def needed(partition: CompiledPartition) -> int:
    assert isinstance(partition, ExamplePartition)
    assert partition.program is not None
    return sum(value.nbytes for value in partition.program.constants.values())


class _Factory:
    name = SpillingExecutionProvider.name
    options = MappingProxyType({"sum_in": "as the example's"})

    def probe(self) -> Probe:
        return EXAMPLE.probe()

    def create(self, options: Any) -> SpillingExecutionProvider:
        return SpillingExecutionProvider(options.get("sum_in", "float32"))


FACTORY = _Factory()

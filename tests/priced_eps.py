"""Execution providers that take nodes at a price, for tests of where nodes go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.identity import HardwareIdentity
from ort_lite.ep import Capability, ExecutionProvider, PlacementCosts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep import CompiledPartition, FusedNode, GraphView

HOME = PlacementCosts(
    launch=0,
    crossing=0,
    crossing_rate=1e12,
    call=1,
    step=1,
    product_rate=1_000,
    stream_rate=1e12,
    math_rate=1_000,
    compile=0,
)
FAST = PlacementCosts(
    launch=10,
    crossing=5,
    crossing_rate=1e12,
    call=0,
    step=0,
    product_rate=1_000_000,
    stream_rate=1e12,
    math_rate=1_000_000,
    compile=0,
)


class Priced(ExecutionProvider):
    """Takes nodes by their operator, at a price."""

    def __init__(self, name: str, operators: str, costs: PlacementCosts | None) -> None:
        self.name = name  # type: ignore[misc] # one class plays several EPs here
        self._operators, self._costs = set(operators.split()), costs

    @property
    def identity(self) -> HardwareIdentity:
        return HardwareIdentity(architecture="none")

    def get_capability(self, view: GraphView) -> Capability:
        nodes = view.graph.nodes
        return Capability(
            frozenset(i for i in view.candidates if nodes[i].op_type in self._operators)
        )

    def placement_costs(self) -> PlacementCosts | None:
        return self._costs

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        raise AssertionError("assigning compiles nothing")

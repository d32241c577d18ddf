"""The interface of plans that run a session's graph for some input shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import Value


class ShapePlan(Protocol):
    """Runs a graph for inputs of one set of shapes."""

    def run(self, values: Sequence[Value]) -> Sequence[Value]:
        """The graph's outputs for the graph's inputs."""
        ...


class ShapePlans(Protocol):
    """Plans of a session's graph for sets of input shapes."""

    def find(self, values: Sequence[Value]) -> ShapePlan | None:
        """The plan for these inputs; None if there is none."""
        ...

    def release(self) -> None:
        """Release the plans."""
        ...

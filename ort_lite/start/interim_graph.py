"""A graph that runs until another one replaces it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ort_lite.planning.prepared_graph import PreparedGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import Value
    from ort_lite.start.prepare_model import PreparedModel


class InterimGraph(PreparedGraph):
    """A prepared graph that hands over to another one while threads run it.

    A run that has begun ends on the graph that it began on; one that comes later goes to the
    successor. The first graph is released when its last run has ended.
    """

    def __init__(self, first: PreparedGraph) -> None:
        """Take over `first`, whose partitions are this one's from now on."""
        super().__init__(first.graph, first.partitions, first.refusals)
        self._lock = threading.Lock()
        self._running = 0
        self._successor: PreparedGraph | None = None

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """As PreparedGraph, or as the successor does."""
        with self._lock:
            successor = self._successor
            if successor is None:
                self._running += 1
        if successor is not None:
            return successor.run(inputs)
        try:
            return super().run(inputs)
        finally:
            with self._lock:
                self._running -= 1
                last = self._successor is not None and not self._running
            if last:
                self.release()

    def hand_over(self, successor: PreparedGraph) -> None:
        """Let every run that begins from now on be the successor's."""
        with self._lock:
            self._successor = successor
            idle = not self._running
        if idle:
            self.release()


def require_same_interface(first: PreparedModel, compiled: PreparedModel) -> None:
    """Feeds were checked, and results are named, by the first graph."""

    def names(one: PreparedModel) -> list[list[str]]:
        graph = one.prepared.graph
        return [
            [i.name for i in infos] for infos in (graph.inputs, graph.overridable, graph.outputs)
        ]

    assert names(first) == names(compiled), f"{names(first)} became {names(compiled)}"


def hand_over(first: PreparedModel, compiled: PreparedModel) -> None:
    """Let every run that begins from now on be of what was compiled."""
    assert isinstance(first.prepared, InterimGraph), "only such a graph can be replaced"
    first.prepared.hand_over(compiled.prepared)

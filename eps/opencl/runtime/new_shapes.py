"""Runs with new shapes, answered elsewhere until the shapes come again: a program takes seconds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.opencl.compile.shapes import Shapes
    from ort_lite.ep import Graph, OtherAnswers

MOST_COUNTED = 1024
"""Sets of shapes whose runs are counted; beyond, those that came longest ago are forgotten."""
RUNS_ELSEWHERE = 16
"""A set of shapes gets a program when it comes once more often than this: so many runs of the CPU
EP take about as long as a compile."""


class NewShapes:
    """Which runs of one partition are answered elsewhere, by how often their shapes came."""

    def __init__(self, graph: Graph) -> None:
        """Leave nothing to others before `offer`.

        Args:
            graph: The partition.
        """
        self._graph = graph
        self._lock = threading.Lock()
        self._prepare: Callable[[Graph], OtherAnswers | None] | None = None
        self._answers: OtherAnswers | None = None
        self._runs: OrderedDict[Shapes, int] = OrderedDict()

    def offer(self, prepare: Callable[[Graph], OtherAnswers | None]) -> None:
        """See SupportsOtherAnswers."""
        self._prepare = prepare

    @property
    def answers(self) -> OtherAnswers | None:
        """Those who answer; None before the first run that they get."""
        return self._answers

    def choose(self, shapes: Shapes) -> OtherAnswers | None:
        """Who answers a run with shapes that have no program; None if they get one now."""
        with self._lock:
            if self._prepare is None and self._answers is None:
                return None
            count = self._runs.pop(shapes, 0) + 1
            if count > RUNS_ELSEWHERE:
                return None
            self._runs[shapes] = count
            if len(self._runs) > MOST_COUNTED:
                self._runs.popitem(last=False)
            if self._prepare is not None:
                prepare, self._prepare = self._prepare, None
                self._answers = prepare(self._graph)
            return self._answers

    def release(self) -> None:
        """Release the others, who answer nothing more."""
        with self._lock:
            self._prepare, answers, self._answers = None, self._answers, None
        if answers is not None:
            answers.release()

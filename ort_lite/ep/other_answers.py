"""Runs of a partition that other execution providers answer, since a compile takes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ort_lite.ep.interface import Value
    from ort_lite.model.graph import Graph


class OtherAnswers(Protocol):
    """A graph on execution providers that compile nothing for shapes."""

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Outputs of inputs, both in the graph's order."""
        ...

    def release(self) -> None:
        """Release the graph; nobody runs it after it."""
        ...


@runtime_checkable
class SupportsOtherAnswers(Protocol):
    """A compiled partition that leaves runs with shapes which may not come again to others."""

    def answer_by(self, prepare: Callable[[Graph], OtherAnswers | None]) -> None:
        """Have such runs answered by what `prepare` makes of the partition's graph.

        It is called in a run, once at most, and returns None where nobody else runs every node.
        """
        ...


@runtime_checkable
class SupportsOtherAnswersReport(Protocol):
    """A compiled partition that may have had its graph prepared once more for others to run."""

    def other_answers(self) -> OtherAnswers | None:
        """The graph on other execution providers; None while no run needed it."""
        ...

"""Bodies of control flow that are one partition, run without the steps around it.

A body of two nodes that runs 1,000 times spends most of its time in what a session does around a
partition: slots, copies of shared results, numpy's treatment of errors. The execution provider
whose kernel runs the body has done all of that already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.ep.body_runs import SupportsBodyRuns
from ort_lite.execution.run_context import current_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import CompiledPartition, Runnable, Value
    from ort_lite.model.graph import Graph


def choose_runnable(
    body: Runnable,
    graph: Graph,
    only: CompiledPartition,
    reads: Sequence[str],
    makes: Sequence[str],
) -> Runnable:
    """The shortest way to run a body from a kernel of the EP that has its only partition.

    Args:
        body: Prepared; takes the values that `graph` takes, captured ones last.
        graph: Of the body.
        only: Its partition.
        reads: Names of the partition's inputs.
        makes: Names of its outputs.

    Returns:
        A `LoneBody` where the partition makes all outputs from the body's own inputs; `body` itself
        otherwise.
    """
    if not isinstance(only, SupportsBodyRuns):
        return body
    takes = [*(info.name for info in (*graph.inputs, *graph.overridable)), *graph.captured]
    gives = [info.name for info in graph.outputs]
    if not (set(reads) <= set(takes) and set(gives) <= set(makes)):
        return body
    return LoneBody(body, only, _places(reads, takes), _places(gives, makes))


class LoneBody:
    """One partition in place of a body; its outputs may share memory with its inputs."""

    __slots__ = ("_body", "_compiled", "_gives", "_reads")

    def __init__(
        self,
        body: Runnable,
        compiled: SupportsBodyRuns,
        reads: tuple[int, ...] | None,
        gives: tuple[int, ...] | None,
    ) -> None:
        """Keep the partition.

        Args:
            body: Runs in its place where a profile or options of the run ask for each step.
            compiled: The partition.
            reads: Place of each of its inputs among those of the body; None where all are equal.
            gives: Place of each output of the body among its own; None likewise.
        """
        self._body = body
        self._compiled = compiled
        self._reads = reads
        self._gives = gives

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """The body's outputs from its inputs and captured values."""
        if current_run() is not None:
            return self._body.run(inputs)
        reads, gives = self._reads, self._gives
        results = self._compiled.run_body(
            inputs if reads is None else [inputs[place] for place in reads]
        )
        return results if gives is None else [results[place] for place in gives]


def _places(names: Sequence[str], among: Sequence[str]) -> tuple[int, ...] | None:
    """Where each name is in `among`; None where both are the same."""
    if list(names) == list(among):
        return None
    return tuple(among.index(name) for name in names)

"""Graphs whose recurrences another execution provider computes in much less time.

The steps of an LSTM, GRU or RNN wait for each other, and execution providers on one CPU differ in
them by up to ten times, where products and convolutions of one graph differ by a tenth. No node
needs to cross for it: the other execution provider gets the whole graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.ep.placement_costs import RESET_BEFORE
from ort_lite.planning.judge_placement import RUNS_PER_COMPILE
from ort_lite.planning.node_work import estimate_work, find_folded, is_free, split_steps
from ort_lite.planning.partitioner import Assignment, Part, takes_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Node
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.ep.placement_costs import PlacementCosts, StepCosts
    from ort_lite.model.graph import Graph
    from ort_lite.planning.node_work import NodeWork

MOST_SHARE = 3 / 4
"""Of the time of a run, up to which another execution provider is faster beyond doubt: estimates
of steps are right within a factor of two, and both are wrong in the same direction mostly."""

MOVED = "which runs the steps of recurrences faster"


@dataclass(frozen=True, slots=True)
class FasterSteps:
    """Microseconds of one run of a graph on two execution providers."""

    here: float
    there: float


def compare_steps(graph: Graph, here: PlacementCosts, there: PlacementCosts) -> FasterSteps | None:
    """The times of a whole graph, if it pays to run it on another execution provider.

    None if it does not, if the graph has no recurrence or a body, if a shape is not known before
    the run, and if an execution provider has no measured costs of some recurrence.
    """
    if any(is_free(graph, info.name) for info in graph.inputs):
        return None
    times = _estimate(graph, here), _estimate(graph, there)
    if times[0] is None or times[1] is None:
        return None
    faster = FasterSteps(times[0], times[1])
    saved = (faster.here - faster.there) * RUNS_PER_COMPILE
    if faster.there > MOST_SHARE * faster.here or saved < there.compile + there.opening:
        return None
    return faster


def move_steps(
    graph: Graph, eps: Sequence[ExecutionProvider], assignment: Assignment
) -> Assignment:
    """`assignment`, or all nodes on an execution provider without any that runs steps faster.

    Args:
        graph: The session's graph, not a body.
        eps: Of the session, the default one last; nobody named their order.
        assignment: Of the graph to them; nothing changes if it is more than one partition.
    """
    if len(assignment.parts) != 1:
        return assignment
    owner = assignment.parts[0].owner
    costs = eps[owner].placement_costs()
    if costs is None:
        return assignment
    for other in range(owner + 1, len(eps) - 1):
        others = eps[other].placement_costs()
        faster = compare_steps(graph, costs, others) if others is not None else None
        if faster is None or not takes_all(graph, eps[other]):
            continue
        why = (
            f"left to {eps[other].name}, {MOVED}: about "
            f"{faster.there:.0f} us a run, and {faster.here:.0f} us here"
        )
        every = tuple(range(len(graph.nodes)))
        refusals = {node: {eps[owner].name: why} for node in every}
        return Assignment((Part(other, every),), refusals)
    return assignment


def _estimate(graph: Graph, costs: PlacementCosts) -> float | None:
    """Microseconds of one run of a whole graph; None without recurrences of measured costs."""
    folded = find_folded(graph)
    total = costs.launch + costs.crossing * (len(graph.inputs) + len(graph.outputs))
    has_steps = False
    for index, node in enumerate(graph.nodes):
        if index in folded:
            continue
        work = estimate_work(graph, index)
        if work.free or graph.bodies(index):
            return None
        shared, steps = split_steps(work)
        total += shared.microseconds(costs)
        if steps is not None:
            measured = costs.step_costs.get(_kind_of(node))
            if measured is None:
                return None
            total += _time_of(steps, measured)
            has_steps = True
    return total if has_steps else None


def _kind_of(node: Node) -> str:
    reset = node.attributes.get("linear_before_reset")
    if node.op_type == "GRU" and (reset is None or reset.value == 0):
        return RESET_BEFORE
    return node.op_type


def _time_of(work: NodeWork, costs: StepCosts) -> float:
    rows = max(1, work.rows)
    if costs.tasks:
        alone = work.steps * rows * costs.step + work.products / costs.rate
        shares = 0 < costs.shared <= work.products / max(1, work.steps * rows)
        return alone / (costs.tasks if shares else min(costs.tasks, rows * work.ways))
    return work.steps * costs.step + work.products / costs.rate / min(costs.sequences, rows)

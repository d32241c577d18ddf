"""Whether an execution provider computes both branches of an If in place of one of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ort_lite.ep.interface import GraphView
from ort_lite.planning.expected_runs import IF_BRANCH
from ort_lite.planning.judge_placement import RUNS_PER_COMPILE
from ort_lite.planning.node_work import estimate_work, find_folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.ep.placement_costs import PlacementCosts
    from ort_lite.model.graph import Graph
    from ort_lite.transforms.ifs_to_where import BranchesPay

CHOOSING = 40.0
"""Microseconds of a session for an If: a condition that comes back, and the steps around a body.
Seen with openWakeWord's hey_jarvis on an Intel Xeon with AMX, as is the next."""
CHOOSING_AT_HOME = 20.0
"""The same within one partition of the default execution provider."""


def judge_branches(ep: ExecutionProvider, home: ExecutionProvider) -> BranchesPay | None:
    """A judge of Ifs for `ifs_to_where`; None where an EP has no costs, or is the default one.

    Both branches pay where the EP takes all nodes but Ifs, so that the If alone parts the graph,
    where they cost less than choosing one, and where the default EP is not faster with all of it.
    """
    costs, at_home = ep.placement_costs(), home.placement_costs()
    if costs is None or at_home is None or costs.composes:
        return None

    @lru_cache(maxsize=1)  # a graph may have many Ifs
    def judge_others(graph: Graph) -> float | None:
        """What all nodes but Ifs cost more than at home; None if `ep` does not take them."""
        others = (i for i, node in enumerate(graph.nodes) if node.op_type != "If")
        if not _takes(ep, graph, others):
            return None
        crossings = costs.crossing * (len(graph.inputs) + len(graph.outputs))
        fixed = costs.launch + crossings + costs.compile / RUNS_PER_COMPILE
        return _microseconds(graph, costs) + fixed - _microseconds(graph, at_home)

    def branches_pay(graph: Graph, index: int) -> bool:
        branches = tuple(graph.bodies(index).values())
        both = sum(_microseconds(branch, costs) for branch in branches)
        if both > costs.launch + CHOOSING:
            return False
        one = sum(_microseconds(branch, at_home) for branch in branches) * IF_BRANCH
        more = judge_others(graph)
        if more is None or more + both > one + CHOOSING_AT_HOME:
            return False
        return all(_takes(ep, branch, range(len(branch.nodes))) for branch in branches)

    return branches_pay


def _microseconds(graph: Graph, costs: PlacementCosts) -> float:
    """Time of the nodes of a graph, without those of its bodies."""
    folded = find_folded(graph)
    indices = (i for i, node in enumerate(graph.nodes) if i not in folded and node.op_type != "If")
    return sum(estimate_work(graph, i).microseconds(costs) for i in indices)


def _takes(ep: ExecutionProvider, graph: Graph, nodes: Iterable[int]) -> bool:
    candidates = frozenset(nodes)
    return candidates <= ep.get_capability(GraphView(graph, candidates)).supported

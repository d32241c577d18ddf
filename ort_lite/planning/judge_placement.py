"""Which of the nodes that an execution provider supports are to run there: those that pay.

A partition costs a launch, a crossing for each value at its border and a share of its compile.
Where its nodes save less than that against the default execution provider, they stay there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.ep.interface import GraphView
from ort_lite.planning.expected_runs import expected_runs
from ort_lite.planning.left_nodes import describe_slow_loop, list_left_nodes
from ort_lite.planning.node_work import (
    estimate_work,
    find_folded,
    is_free,
    is_heavy,
    value_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.ep.placement_costs import PlacementCosts
    from ort_lite.model.graph import Graph

RUNS_PER_COMPILE = 2000
"""Runs of a session over which the compile of a partition has to come back."""
LEAST_RUNS = 0.01
"""Of a body in one run of its session, for a loop that is declared to run no time."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Compares execution providers with the default one of a session.

    Attributes:
        home: The default execution provider, where nodes stay that do not pay elsewhere.
        runs: How often the graph runs in one run of the session: a loop's body more than once,
            the branch of an If less.
    """

    home: ExecutionProvider
    runs: float = 1.0

    def find_unprofitable(
        self,
        graph: Graph,
        ep: ExecutionProvider,
        nodes: set[int],
        groups: Sequence[Sequence[int]],
        declined: Iterable[int] = (),
    ) -> dict[int, str]:
        """Nodes that cost more on `ep` than they save, each with the figures.

        A graph that `ep` runs as one partition, from the session's inputs to its outputs, has no
        crossing inside and is never divided: the user named `ep` for it.

        Args:
            graph: Any graph; the body of a node is judged whether or not it is one partition.
            ep: Supports `nodes`.
            nodes: Indices in `graph`.
            groups: The same by partition.
            declined: Nodes that the default execution provider could not compile.
        """
        costs, at_home = ep.placement_costs(), self.home.placement_costs()
        if costs is None or at_home is None or ep is self.home:
            return {}
        if not graph.is_body and len(groups) == 1 and len(nodes) == len(graph.nodes):
            return {}
        movable = self.home.get_capability(GraphView(graph, frozenset(nodes))).supported
        movable -= frozenset(declined)
        scale = _Scale(graph, costs, at_home, find_folded(graph))
        left: dict[int, str] = {}
        for group in groups:
            left |= self._judge_partition(scale, group, movable)
        return left

    def find_slow_loops(
        self, graph: Graph, ep: ExecutionProvider, nodes: set[int]
    ) -> dict[int, str]:
        """Nodes with bodies that take longer on `ep` than in the session, each with the figures.

        Also in a graph that `ep` would run as one partition: kernels of a few microseconds are
        called in each iteration, and who named `ep` has not chosen who calls them.

        Args:
            graph: Any graph.
            ep: Supports `nodes`, with their bodies.
            nodes: Indices in `graph`.
        """
        costs, at_home = ep.placement_costs(), self.home.placement_costs()
        loops = [node for node in sorted(nodes) if graph.bodies(node)]
        if not loops or costs is None or at_home is None or ep is self.home:
            return {}
        slow = {}
        for node in loops:
            here, there = (_microseconds(graph, node, each) for each in (at_home, costs))
            if there > here:
                slow[node] = describe_slow_loop(self.home.name, here, there)
        return slow

    def estimate(self, graph: Graph, ep: ExecutionProvider, nodes: Sequence[int]) -> float | None:
        """Microseconds of a partition on `ep`, crossings, launch and compile included.

        None if `ep` has no costs.
        """
        costs, at_home = ep.placement_costs(), self.home.placement_costs()
        if costs is None or at_home is None:
            return None
        scale = _Scale(graph, costs, at_home, find_folded(graph))
        balance = scale.balance(nodes)
        return balance.there + balance.crossing + scale.fixed_cost(nodes, self.runs)

    def _judge_partition(
        self, scale: _Scale, group: Sequence[int], movable: frozenset[int]
    ) -> dict[int, str]:
        """Judge the connected parts of a partition by themselves, then what is left of it."""
        left: dict[int, str] = {}
        kept: list[_Balance] = []
        for part in _find_connected(scale.graph, group):
            balance = scale.balance(part)
            if not movable.issuperset(part):
                kept.append(balance)
            elif balance.there + balance.crossing > balance.here:
                left |= dict.fromkeys(part, list_left_nodes(self.home.name, *balance.figures()))
            else:
                kept.append(balance)
        whole = _Balance.sum_of(kept)
        whole = replace(whole, crossing=whole.crossing + scale.fixed_cost(whole.nodes, self.runs))
        if whole.there + whole.crossing > whole.here and movable.issuperset(whole.nodes):
            left |= dict.fromkeys(whole.nodes, list_left_nodes(self.home.name, *whole.figures()))
        return left


def may_pay(
    graph: Graph,
    costs: PlacementCosts,
    at_home: PlacementCosts,
    runs: float = 1.0,
    *,
    nodes: Iterable[int] | None = None,
) -> bool:
    """Whether some nodes of a graph, or of a body in one, could pay on an EP that is not open.

    Each node counts that would save anything, whether or not the EP supports it, and of crossings
    one output alone: no partition does better. Opening the EP has to come back as a compile has.

    Args:
        graph: Any graph.
        costs: Of the EP.
        at_home: Of the default EP.
        runs: How often the graph runs in one run of the session.
        nodes: Indices of those that the EP can get; None for all.
    """
    offered = range(len(graph.nodes)) if nodes is None else sorted(nodes)
    folded = find_folded(graph)
    work = [estimate_work(graph, node) for node in offered if node not in folded]
    saved = sum(max(0.0, one.microseconds(at_home) - one.microseconds(costs)) for one in work)
    share = (costs.compile + costs.opening) / RUNS_PER_COMPILE / max(runs, LEAST_RUNS)
    if saved > costs.launch + share + costs.crossing:
        return True
    return any(
        may_pay(body, costs, at_home, runs * expected_runs(graph, node))
        for node in offered
        for body in graph.bodies(node).values()
    )


def run_microseconds(graph: Graph, costs: PlacementCosts) -> float:
    """About the time of one run of a graph on a device that gets all of it.

    Quickly: nodes that neither multiply matrices nor have bodies count as one call that reads as
    much as it writes.
    """
    time = 0.0
    for index, node in enumerate(graph.nodes):
        if is_heavy(node) or graph.bodies(index):
            time += _microseconds(graph, index, costs)
        elif node.outputs and node.outputs[0]:
            time += costs.call + 2 * value_bytes(graph, node.outputs[0]) / costs.stream_rate
    return time


@dataclass(frozen=True, slots=True)
class _Balance:
    """Microseconds of some nodes: on the default execution provider, on another, and between."""

    nodes: tuple[int, ...]
    here: float
    there: float
    crossing: float

    @classmethod
    def sum_of(cls, parts: Sequence[_Balance]) -> _Balance:
        return cls(
            tuple(node for part in parts for node in part.nodes),
            sum(part.here for part in parts),
            sum(part.there for part in parts),
            sum(part.crossing for part in parts),
        )

    def figures(self) -> tuple[float, float, float]:
        return self.here, self.there, self.crossing


@dataclass(frozen=True, slots=True)
class _Scale:
    """Weighs nodes of one graph on two execution providers.

    Attributes:
        folded: Nodes of the graph that no run computes.
    """

    graph: Graph
    costs: PlacementCosts
    at_home: PlacementCosts
    folded: frozenset[int]

    def balance(self, nodes: Sequence[int]) -> _Balance:
        running = [node for node in nodes if node not in self.folded]
        crossing = sum(self._crossing(name) for name in _border(self.graph, nodes))
        here = sum(_microseconds(self.graph, node, self.at_home) for node in running)
        there = sum(_microseconds(self.graph, node, self.costs) for node in running)
        return _Balance(tuple(nodes), here, there, crossing)

    def fixed_cost(self, nodes: Sequence[int], runs: float) -> float:
        """Launch of a partition, and a run's share of its compile."""
        running = (node for node in nodes if node not in self.folded)
        free = any(estimate_work(self.graph, node).free for node in running)
        share = self.costs.compile / RUNS_PER_COMPILE / max(runs, LEAST_RUNS)
        return (self.costs.launch + share) * (self.costs.free_factor if free else 1)

    def _crossing(self, name: str) -> float:
        factor = self.costs.free_factor if is_free(self.graph, name) else 1
        handed = value_bytes(self.graph, name) / self.costs.crossing_rate
        return self.costs.crossing * factor + handed


def _microseconds(graph: Graph, node: int, costs: PlacementCosts) -> float:
    """Time of a node on a device; with its bodies, if the device runs these."""
    time = estimate_work(graph, node).microseconds(costs)
    for body in graph.bodies(node).values():
        folded = find_folded(body)
        running = [index for index in range(len(body.nodes)) if index not in folded]
        free = any(estimate_work(body, index).free for index in running)
        inside = sum(_microseconds(body, index, costs) for index in running)
        inside += costs.iteration * (costs.free_factor if free else 1)
        if costs.state_rate:
            handed = (*(info.name for info in body.inputs), *body.captured)
            inside += sum(value_bytes(body, name) for name in handed) / costs.state_rate
        time += expected_runs(graph, node) * inside
    return time


def _border(graph: Graph, nodes: Sequence[int]) -> Iterable[str]:
    """Values that come into some nodes, and those of theirs that are needed outside."""
    inside = set(nodes)
    made = {name for i in nodes for name in graph.nodes[i].outputs if name}
    outputs = {info.name for info in graph.outputs}
    read = dict.fromkeys(name for i in nodes for name in graph.node_inputs(i))
    yield from (name for name in read if name not in made and graph.constant(name) is None)
    for name in made:
        if name in outputs or not inside.issuperset(graph.consumers(name)):
            yield name


def _find_connected(graph: Graph, nodes: Sequence[int]) -> list[list[int]]:
    """`nodes` by connected part, each ascending, in the order of their first nodes."""
    parent = {node: node for node in nodes}

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for node in nodes:
        for name in graph.node_inputs(node):
            maker = graph.producer(name)
            if maker is not None and maker in parent:
                parent[root(node)] = root(maker)
    parts: dict[int, list[int]] = {}
    for node in sorted(nodes):
        parts.setdefault(root(node), []).append(node)
    return list(parts.values())

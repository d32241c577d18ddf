"""Which execution provider runs which nodes: first come, first served, in maximal partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import TensorType
from ort_lite.ep.interface import GraphView
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ort_lite.ep.interface import Capability, ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.planning.judge_placement import Judge

Refusals = dict[int, dict[str, str]]
"""Node index to {EP name: why it does not run the node}."""

EMPTY = "it has a value without elements, and this execution provider computes none"
CONTROL_FLOW = "control-flow nodes run in the session; their bodies are partitioned separately"


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes that one EP runs together.

    Attributes:
        owner: Index of the EP in the session's order.
        nodes: Indices in the graph, ascending, which is a topological order.
    """

    owner: int
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Every node's EP.

    Attributes:
        parts: In an order in which they can run.
        refusals: For each node that an EP was asked about and declined, why.
    """

    parts: tuple[Part, ...]
    refusals: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Units:
    """The graph while partitions form: each unit is one node or one finished part."""

    unit_of: list[int]
    members: list[list[int]]
    owners: list[int | None]
    order: list[int]


def assign(
    graph: Graph,
    eps: Sequence[ExecutionProvider],
    *,
    declined: Mapping[int, Mapping[int, str]] | None = None,
    fixed: Sequence[Part] = (),
    unasked: Mapping[int, str] | None = None,
    judge: Judge | None = None,
) -> Assignment:
    """Give every node to the first EP in `eps` that runs it and, with a judge, pays.

    Among the nodes an EP takes, partitions are as few and as large as data flow allows: a
    node's depth is the largest number of times that a path to it leaves the EP and comes
    back, and nodes of equal depth form one partition. Equal depth makes each partition
    convex, and no assignment has fewer of them, since a path of depth n needs n. Time is
    linear in nodes and edges for each EP. Only nodes that may have to run elsewhere because
    the data selects nothing are in partitions of their own.

    Args:
        graph: With any number of nodes.
        eps: In the user's order, the default EP last.
        declined: EP index to nodes that it could not compile after all, with the reason.
        fixed: Parts that are settled beforehand (EPContext nodes).
        unasked: Indices of EPs that are offered nothing, with the reason.
        judge: Says which nodes an EP gives up although it supports them; None for no node.

    Raises:
        NotImplemented: No EP runs some node; names the node and every EP's reason.
    """
    refusals: Refusals = {}
    units = _single_units(graph)
    taken = {node for part in fixed for node in part.nodes}
    for part in fixed:
        _merge(units, part.owner, part.nodes)
    stuck = (declined or {}).get(len(eps) - 1, {})
    for owner, ep in enumerate(eps):
        candidates = frozenset(range(len(graph.nodes))) - taken
        if not candidates:
            break
        if unasked and owner in unasked:
            _refuse(refusals, ep, dict.fromkeys(candidates, unasked[owner]))
            continue
        claimed = _claim(ep, graph, candidates, (declined or {}).get(owner, {}), refusals)
        if judge is not None:
            slow = judge.find_slow_loops(graph, ep, claimed - stuck.keys())
            _refuse(refusals, ep, slow)
            claimed -= slow.keys()
        for mine in _divide(ep, graph, claimed):
            groups = _groups(graph, units, mine)
            if judge is not None:
                left = judge.find_unprofitable(graph, ep, mine, groups, stuck)
                _refuse(refusals, ep, left)
                mine -= left.keys()
                groups = _groups(graph, units, mine) if left else groups
            for group in groups:
                _merge(units, owner, group)
            taken |= mine
            units.order = _unit_order(graph, units)
    _require_all(graph, taken, refusals, eps)
    parts = (Part(_owner(units, u), tuple(units.members[u])) for u in units.order)
    return Assignment(tuple(parts), refusals)


def _refuse(refusals: Refusals, ep: ExecutionProvider, reasons: Mapping[int, str]) -> None:
    for i, reason in reasons.items():
        refusals.setdefault(i, {})[ep.name] = reason


def takes_all(graph: Graph, ep: ExecutionProvider) -> bool:
    """Whether `ep` is able to run every node."""
    every = frozenset(range(len(graph.nodes)))
    return len(_claim(ep, graph, every, {}, {})) == len(every)


def _owner(units: _Units, unit: int) -> int:
    owner = units.owners[unit]
    assert owner is not None, "every node has an owner once _require_all has passed"
    return owner


def _claim(
    ep: ExecutionProvider,
    graph: Graph,
    candidates: frozenset[int],
    declined: Mapping[int, str],
    refusals: Refusals,
) -> set[int]:
    """The candidates that `ep` takes; the reasons for the rest go into `refusals`."""
    withheld = {} if ep.takes_empty else dict.fromkeys(_empty_nodes(graph, candidates), EMPTY)
    if not ep.runs_bodies_through_session:
        withheld.update(_withhold_bodies(ep, graph, candidates - withheld.keys()))
    _refuse(refusals, ep, withheld)
    candidates -= withheld.keys()
    capability: Capability = ep.get_capability(GraphView(graph, candidates))
    mine = {i for i in capability.supported if i in candidates and i not in declined}
    for i in candidates - mine:
        reason = declined.get(i) or capability.refused.get(i) or "no reason given"
        refusals.setdefault(i, {})[ep.name] = reason
    return mine


def _withhold_bodies(
    ep: ExecutionProvider, graph: Graph, candidates: frozenset[int]
) -> dict[int, str]:
    """Candidates with bodies that `ep` is not offered, with the reasons."""
    withheld = {}
    for i in candidates:
        if not graph.bodies(i):
            continue
        node = graph.nodes[i]
        if node.domain not in ("", "ai.onnx") or node.op_type not in ep.whole_bodies:
            withheld[i] = CONTROL_FLOW
            continue
        from ort_lite.planning.data_sizes import may_be_empty_inside  # noqa: PLC0415 - lazy: rare

        if not ep.takes_empty and may_be_empty_inside(graph, i):
            withheld[i] = EMPTY
    return withheld


def _divide(ep: ExecutionProvider, graph: Graph, mine: set[int]) -> list[set[int]]:
    """The nodes that `ep` takes, by whether they form partitions with each other.

    A run without elements at an input takes the whole partition from an EP that computes none.
    Nodes behind a selection of another EP are therefore not in one with the nodes before it.
    """
    if ep.takes_empty:
        return [mine]
    from ort_lite.planning.data_sizes import find_behind_selections  # noqa: PLC0415 - lazy: reload

    behind = find_behind_selections(graph, mine)
    return [mine - behind, behind] if behind else [mine]


def _empty_nodes(graph: Graph, candidates: frozenset[int]) -> frozenset[int]:
    """Candidates that read or make a value which is not a constant and has a dimension of zero."""
    return frozenset(
        index
        for index in candidates
        if any(
            _is_empty(graph, name)
            for name in (*graph.nodes[index].inputs, *graph.nodes[index].outputs)
            if name
        )
    )


def _is_empty(graph: Graph, name: str) -> bool:
    value_type = graph.type_of(name)
    if (
        not isinstance(value_type, TensorType)
        or value_type.shape is None
        or 0 not in value_type.shape
    ):
        return False
    return graph.constant(name) is None


def _single_units(graph: Graph) -> _Units:
    count = len(graph.nodes)
    return _Units(
        unit_of=list(range(count)),
        members=[[i] for i in range(count)],
        owners=[None] * count,
        order=list(range(count)),
    )


def _merge(units: _Units, owner: int, nodes: Sequence[int]) -> None:
    """Make one unit of `nodes`; it takes the number of the first."""
    target = nodes[0]
    for node in nodes:
        units.unit_of[node] = target
        if node != target:
            units.members[node] = []
    units.members[target] = sorted(nodes)
    units.owners[target] = owner


def _predecessors(graph: Graph, units: _Units) -> Callable[[int], set[int]]:
    """Units that a unit reads from."""

    def of(unit: int) -> set[int]:
        makers = set()
        for node in units.members[unit]:
            for name in graph.node_inputs(node):
                maker = graph.producer(name)
                if maker is not None:
                    makers.add(units.unit_of[maker])
        makers.discard(unit)
        return makers

    return of


def _groups(graph: Graph, units: _Units, mine: set[int]) -> list[list[int]]:
    """The nodes of `mine` by depth, shallowest first."""
    depth: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    before = _predecessors(graph, units)
    for unit in units.order:
        inside = units.members[unit][0] in mine
        deepest = 1 if inside else 0
        for other in before(unit):
            same = units.members[other][0] in mine
            deepest = max(deepest, depth[other] + (1 if inside and not same else 0))
        depth[unit] = deepest
        if inside:
            groups.setdefault(deepest, []).append(unit)
    return [sorted(groups[key]) for key in sorted(groups)]


def _unit_order(graph: Graph, units: _Units) -> list[int]:
    """A topological order of the units, of several the one with the lowest first node first."""
    from ort_lite.model.topological import topological_order  # noqa: PLC0415 - lazy: reload

    before = _predecessors(graph, units)
    alive = [unit for unit, members in enumerate(units.members) if members]
    places = {unit: place for place, unit in enumerate(alive)}
    order = topological_order([[places[need] for need in before(unit)] for unit in alive])
    assert len(order) == len(alive), "partitions of equal depth are convex"
    return [alive[place] for place in order]


def _require_all(
    graph: Graph, taken: set[int], refusals: Refusals, eps: Sequence[ExecutionProvider]
) -> None:
    for i, node in enumerate(graph.nodes):
        if i in taken:
            continue
        reasons = "; ".join(f"{ep}: {why}" for ep, why in refusals.get(i, {}).items())
        domain = node.domain or "ai.onnx"
        version = graph.opset_imports.get(node.domain, 1)
        raise NotImplementedByAny(
            f"Could not find an implementation for {node.op_type}({version}) node with name "
            f"'{node.name}' (domain {domain}). Execution providers asked: "
            f"{[ep.name for ep in eps]}. {reasons}"
        )

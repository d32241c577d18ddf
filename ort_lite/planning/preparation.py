"""From a graph and execution providers to something that runs: partition, fuse, compile."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.onnx_model import TensorType
from ort_lite.ep.interface import CompileRefused, FusedNode, SupportsEpContext
from ort_lite.ep.memory_use import SupportsRoomCheck
from ort_lite.planning.partitioner import Part, assign
from ort_lite.planning.prepared_graph import Partition, PreparedGraph
from ort_lite.session_log import get_logger
from ort_lite.status import EPFail, Fail, ModelRequiresCompilation, load_canceled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping, Sequence

    from ort_lite.ep.interface import CompiledPartition, ExecutionProvider, Runnable
    from ort_lite.model.graph import Graph
    from ort_lite.planning.empty_runs import EmptyRuns
    from ort_lite.planning.judge_placement import Judge
    from ort_lite.planning.partitioner import Assignment

log = get_logger(__name__)

ROUNDS = 200
"""Most repartitions of a graph after an EP declined nodes at compile time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationRules:
    """The EPs of a session, and how partitions for them are compiled.

    Attributes:
        eps: In order of preference, the default EP last.
        forbid_compile: `session.disable_model_compile`.
        progress: Called with (partition name, how many are done, how many there are at this
            level) before each compile; an exception from it cancels.
        canceled: Whether the caller has asked to stop; asked before each compile.
        import_partitions: Imports the partitions of a graph that are EPContext nodes; None where
            the model is not a context. EPs that keep contexts are then offered nothing else.
        fuse: Rewrites a partition into what its EP asks for; inputs and outputs stay.
        names: How often each `<EP>_<metadef>` was given out in this session.
        digests: Of bodies of control flow; see `metadef_id`.
        judged: Whether EPs get only nodes that pay there (`session.placement`).
        ordered: Whether the order of `eps` is the user's; if not, an EP that runs every node may
            get them before one that comes earlier.
        reloaded: Whether partitions are written, and later run where their nodes are not.
        selected: Values of the graph that have no elements in some runs, if `reloaded`.
    """

    eps: Sequence[ExecutionProvider]
    forbid_compile: bool = False
    progress: Callable[[str, int, int], None] | None = None
    canceled: Callable[[], bool] = lambda: False
    import_partitions: Callable[[Graph], Mapping[Part, Partition]] | None = None
    fuse: Callable[[ExecutionProvider, Graph], Graph] | None = None
    names: dict[str, int] = field(default_factory=dict)
    digests: MutableMapping[Graph, bytes] = field(default_factory=WeakKeyDictionary)
    judged: bool = False
    ordered: bool = True
    reloaded: bool = False
    selected: frozenset[str] = frozenset()

    def judge(self, runs: float) -> Judge | None:
        """Says which nodes pay; None where all do, and where a context settles it."""
        if not self.judged or len(self.eps) < 2 or self.import_partitions is not None:
            return None
        from ort_lite.planning.judge_placement import Judge  # noqa: PLC0415 - lazy: reload

        return Judge(self.eps[-1], runs)

    def partition_name(self, ep: str, subgraph: Graph) -> str:
        """`<EP>_<metadef>_<id>`: the id counts partitions of one content."""
        from ort_lite.planning.naming import metadef_id  # noqa: PLC0415 - lazy: reload

        base = f"{ep}_{metadef_id(subgraph, self.digests)}"
        count = self.names.get(base, 0)
        self.names[base] = count + 1
        return f"{base}_{count}"


def prepare(
    graph: Graph,
    rules: PreparationRules,
    runs: float = 1.0,
    *,
    first: Assignment | None = None,
) -> PreparedGraph:
    """Partition `graph` among the EPs and compile every partition.

    An EP that turns out not to be able to compile some nodes loses them to the next EP; the
    rest is partitioned anew, and what was compiled already is kept where it is unchanged.

    Args:
        graph: Resolved, with the types that inference found.
        rules: The EPs, and how they are used.
        runs: How often the graph is expected to run in one run of the session.
        first: What `assign` makes of the graph and these EPs, where the caller knows.

    Raises:
        NotImplemented: No EP runs some node.
        EPFail: An SDK or device failed in another way than not supporting a node.
        ModelLoadCanceled: The caller asked to stop.
        ModelRequiresCompilation: `forbid_compile`, and an EP with a compiled form would.
    """
    importing = rules.import_partitions
    done: dict[Part, Partition] = dict(importing(graph)) if importing else {}
    fixed = tuple(done)
    declined: dict[int, dict[int, str]] = {}
    unasked, judge = _find_unasked(rules), rules.judge(runs)
    if rules.reloaded:
        from ort_lite.planning.data_sizes import values_by_selection  # noqa: PLC0415 - lazy: reload

        rules = replace(rules, selected=values_by_selection(graph, rules.selected))
    for _ in range(ROUNDS):
        try:
            assignment = first or assign(
                graph, rules.eps, declined=declined, fixed=fixed, unasked=unasked, judge=judge
            )
            first = None
            if judge is not None and not (rules.ordered or declined or graph.is_body):
                from ort_lite.planning.faster_steps import move_steps  # noqa: PLC0415 - lazy: reload
                from ort_lite.planning.whole_graph import keep_whole  # noqa: PLC0415 - lazy: reload

                assignment = keep_whole(graph, rules.eps, assignment, judge)
                assignment = move_steps(graph, rules.eps, assignment)
            if rules.selected:
                from ort_lite.planning.reloaded_parts import find_unanswered  # noqa: PLC0415 - lazy: reload

                unanswered = find_unanswered(graph, rules.eps, assignment.parts, rules.selected)
                for owner, reasons in unanswered.items():
                    declined.setdefault(owner, {}).update(reasons)
                if unanswered:
                    continue
            assigned = set(assignment.parts)
            for part in [p for p in done if p not in assigned]:
                done.pop(part).release()
            _compile_missing(graph, rules, assignment.parts, done, runs)
        except _Declined as exc:
            declined.setdefault(exc.part.owner, {}).update(exc.reasons)
            continue
        except Exception:
            _release(done)
            raise
        parts = [done[p] for p in assignment.parts]
        return PreparedGraph(graph, parts, assignment.refusals)
    _release(done)
    raise Fail(f"execution providers kept declining nodes; gave up after {ROUNDS} rounds")


def _find_unasked(rules: PreparationRules) -> dict[int, str]:
    """In a context model, EPs that keep contexts: what they could compile is in it."""
    if rules.import_partitions is None:
        return {}
    reason = "not part of a context; loading a context model compiles nothing"
    return {i: reason for i, ep in enumerate(rules.eps) if isinstance(ep, SupportsEpContext)}


class _Declined(Exception):  # noqa: N818 - a signal inside this module, not an error
    def __init__(self, part: Part, reasons: Mapping[int, str]) -> None:
        super().__init__(part)
        self.part = part
        self.reasons = reasons


def _release(done: Mapping[Part, Partition]) -> None:
    for partition in done.values():
        partition.release()


def _compile_missing(
    graph: Graph,
    rules: PreparationRules,
    parts: Sequence[Part],
    done: dict[Part, Partition],
    runs: float,
) -> None:
    missing = [part for part in parts if part not in done]
    # Bodies last: a partition that is declined changes its neighbours, and preparing the
    # bodies of control flow again at every level would multiply with each level.
    missing.sort(key=lambda part: rules.eps[part.owner].runs_bodies_through_session)
    drafts = _draft_together(graph, rules, missing)
    for count, part in enumerate(missing):
        ep = rules.eps[part.owner]
        if rules.forbid_compile and isinstance(ep, SupportsEpContext):
            raise ModelRequiresCompilation(
                f"User disabled EP compilation but EP '{ep.name}' needs to compile one or more "
                "nodes."
            )
        subgraph, changed = drafts.get(part) or _draft(graph, rules, part)
        name = rules.partition_name(ep.name, subgraph)
        if rules.canceled():
            raise load_canceled()
        if rules.progress is not None:
            rules.progress(name, count, len(missing))
        bodies = _bodies(ep, changed, rules, runs)
        try:
            fused = FusedNode(
                name=name,
                graph=changed,
                bodies=_runnables(ep, bodies),
                progress=rules.progress,
            )
            compiled = _compile_one(ep, fused, part)
        except _Declined:
            if changed is subgraph:
                raise
            # Reasons are about nodes of the fused graph; ask again about those of the model.
            for body in bodies.values():
                body.release()
            changed, bodies = subgraph, _bodies(ep, subgraph, rules, runs)
            fused = replace(fused, graph=changed, bodies=_runnables(ep, bodies))
            compiled = _compile_one(ep, fused, part)
        done[part] = Partition(
            ep=ep,
            name=name,
            nodes=part.nodes,
            graph=changed,
            compiled=compiled,
            inputs=tuple(info.name for info in subgraph.inputs),
            outputs=tuple(info.name for info in subgraph.outputs),
            bodies=bodies,
            empty=guard(ep, name, subgraph, rules.eps),
        )


def _draft(graph: Graph, rules: PreparationRules, part: Part) -> tuple[Graph, Graph]:
    """A partition as a graph of its own, and as its EP gets it."""
    ep = rules.eps[part.owner]
    subgraph = graph.extract(part.nodes, f"{ep.name}_{part.nodes[0]}")
    return subgraph, rules.fuse(ep, subgraph) if rules.fuse is not None else subgraph


def _draft_together(
    graph: Graph, rules: PreparationRules, parts: Sequence[Part]
) -> dict[Part, tuple[Graph, Graph]]:
    """Drafts of partitions that need memory of one device, which has room for all of them.

    Raises:
        EPFail: It has not.
    """
    drafts: dict[Part, tuple[Graph, Graph]] = {}
    for owner, ep in enumerate(rules.eps):
        mine = [part for part in parts if part.owner == owner]
        if len(mine) < 2 or rules.forbid_compile or not isinstance(ep, SupportsRoomCheck):
            continue
        drafts |= {part: _draft(graph, rules, part) for part in mine}
        if rules.canceled():
            raise load_canceled()
        ep.require_room([drafts[part][1] for part in mine])
    return drafts


def guard(
    ep: ExecutionProvider, name: str, graph: Graph, eps: Sequence[ExecutionProvider] = ()
) -> EmptyRuns | None:
    """The object that computes a partition's runs without elements; None if none is needed.

    Args:
        ep: Whose partition.
        name: Of the partition.
        graph: The partition; of a context, its inputs and outputs alone.
        eps: The session's, where `graph` has nodes that they can run.
    """
    if ep.takes_empty or not may_be_empty(graph):
        return None
    from ort_lite.planning.empty_runs import EmptyRuns  # noqa: PLC0415 - lazy: rare

    whole = not graph.overridable and not graph.captured
    takers = [taker for taker in eps if taker.takes_empty] if whole else []
    rules = PreparationRules(eps=takers)
    return EmptyRuns(name, graph, (lambda: prepare(graph, rules)) if takers else None)


def may_be_empty(graph: Graph) -> bool:
    """Whether an input may have no elements: a dimension is free, or the shape not known."""
    return any(
        not isinstance(info.type, TensorType)
        or info.type.shape is None
        or not all(isinstance(dim, int) and dim > 0 for dim in info.type.shape)
        for info in graph.inputs
    )


WITH_PARTITIONED_BODIES = frozenset(("If", "Loop", "Scan", "SequenceMap"))
"""Operators whose bodies are partitioned among the EPs. Those of others, such as FlexAttention,
become part of the function that the operator stands for, which cannot contain EPContext nodes."""


def _bodies(
    ep: ExecutionProvider, subgraph: Graph, rules: PreparationRules, runs: float
) -> dict[tuple[int, str], PreparedGraph]:
    named_bodies: dict[tuple[int, str], PreparedGraph] = {}
    if not ep.runs_bodies_through_session:
        return named_bodies
    for i, node in enumerate(subgraph.nodes):
        if node.op_type not in WITH_PARTITIONED_BODIES:
            continue
        for key, body in subgraph.bodies(i).items():
            from ort_lite.planning.expected_runs import expected_runs  # noqa: PLC0415 - lazy: rare

            mine = rules
            if rules.reloaded:
                from ort_lite.planning.data_sizes import find_empty_in_body  # noqa: PLC0415 - lazy: reload

                empty = find_empty_in_body(subgraph, i, body, rules.selected)
                mine = replace(rules, selected=empty)
            named_bodies[i, key] = prepare(body, mine, runs * expected_runs(subgraph, i))
    return named_bodies


def _runnables(
    ep: ExecutionProvider, bodies: Mapping[tuple[int, str], PreparedGraph]
) -> dict[tuple[int, str], Runnable]:
    """Each body as a kernel of `ep` runs it."""
    if not bodies:
        return {}
    from ort_lite.planning.foreign_bodies import ForeignBody  # noqa: PLC0415 - lazy: rare
    from ort_lite.planning.lone_bodies import choose_runnable  # noqa: PLC0415 - lazy: rare

    runnables: dict[tuple[int, str], Runnable] = dict(bodies)
    for key, body in bodies.items():
        only = body.partitions[0] if len(body.partitions) == 1 else None
        if only is not None and only.ep is ep and only.empty is None:
            runnables[key] = choose_runnable(
                body, body.graph, only.compiled, only.inputs, only.outputs
            )
        elif any(part.ep is not ep for part in body.partitions):
            runnables[key] = ForeignBody(body)
    return runnables


def _compile_one(ep: ExecutionProvider, fused: FusedNode, part: Part) -> CompiledPartition:
    try:
        results = ep.compile([fused])
    except CompileRefused as exc:
        refused = exc.refused or dict.fromkeys(range(len(part.nodes)), exc.message)
        log.debug("%s declines %d nodes of %s: %s", ep.name, len(refused), fused.name, exc.message)
        raise _Declined(part, {part.nodes[i]: why for i, why in refused.items()}) from exc
    if len(results) != 1:
        raise EPFail(f"{ep.name} did not return correct number of compiled functions")
    return results[0]

"""From a graph and execution providers to something that runs: partition, fuse, compile."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.onnx_model import TensorType
from ort_lite.ep.interface import CompileRefused, FusedNode, SupportsEpContext
from ort_lite.ep.memory_use import SupportsRoomCheck
from ort_lite.execution.run_context import NodeLabel
from ort_lite.execution.signature import Signature
from ort_lite.execution.slots import PartitionProgram, PartitionStep
from ort_lite.model.tensor_values import to_numpy
from ort_lite.planning.partitioner import Part, assign
from ort_lite.session_log import get_logger
from ort_lite.status import EPFail, Fail, ModelRequiresCompilation, load_canceled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping, Sequence

    from ctx_formats.onnx_model import Tensor
    from ort_lite.ep.device_tensors import Place
    from ort_lite.ep.interface import CompiledPartition, ExecutionProvider, Runnable, Value
    from ort_lite.model.graph import Graph
    from ort_lite.planning.empty_runs import EmptyRuns
    from ort_lite.planning.judge_placement import Judge
    from ort_lite.planning.shape_plans import ShapePlans
    from ort_lite.planning.watch import Watch

log = get_logger(__name__)

ROUNDS = 200
"""Most repartitions of a graph after an EP declined nodes at compile time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition of a prepared graph.

    Attributes:
        nodes: Indices in the prepared graph.
        graph: The partition as a graph of its own, fused as its EP asked for it.
        bodies: Prepared bodies of the control flow in it, for an EP that asked for them.
        inputs: Names in the order in which `compiled` takes them.
        outputs: Names in the order in which `compiled` gives them.
        origin: "compiled", or "context" when it came out of an EPContext node.
        empty: Answers runs with an input that has no elements; None where `compiled` does, or
            there cannot be such an input.
    """

    ep: ExecutionProvider
    name: str
    nodes: tuple[int, ...]
    graph: Graph
    compiled: CompiledPartition
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    bodies: Mapping[tuple[int, str], PreparedGraph] = field(default_factory=dict)
    origin: str = "compiled"
    empty: EmptyRuns | None = None

    @property
    def runnable(self) -> Runnable:
        """The object that computes the outputs, for inputs of any size."""
        if self.empty is None:
            return self.compiled
        from ort_lite.planning.empty_runs import GuardedPartition  # noqa: PLC0415 - lazy: rare

        return GuardedPartition(self.compiled, self.empty)

    def step(self) -> PartitionStep:
        """The partition as a step of the graph's program."""
        label = NodeLabel(name=self.name, op_type=self.name, provider=self.ep.name)
        return PartitionStep(
            runnable=self.runnable,
            inputs=self.inputs,
            outputs=self.outputs,
            label=None if self.compiled.records_nodes else label,
        )

    def release(self) -> None:
        """Release the compiled form, bodies first."""
        for body in self.bodies.values():
            body.release()
        self.compiled.release()
        if self.empty is not None:
            self.empty.release()


class PreparedGraph:
    """A graph whose every node has a compiled home; many threads may run it at once.

    Attributes:
        graph: What was prepared.
        partitions: In the order in which they run.
        refusals: Node index to {EP name: reason}, for nodes that some EP declined.
        watch: Over files that partitions have mapped and others may write to, if any.
        specialized: Plans that run in place of the partitions for some input shapes; None without.
    """

    def __init__(
        self,
        graph: Graph,
        partitions: Sequence[Partition],
        refusals: Mapping[int, Mapping[str, str]],
        watch: Watch | None = None,
    ) -> None:
        self.graph = graph
        self.partitions = tuple(partitions)
        self.refusals = dict(refusals)
        self.watch = watch
        self.specialized: ShapePlans | None = None
        self._program = PartitionProgram(
            [info.name for info in (*graph.inputs, *graph.overridable)] + list(graph.captured),
            [part.step() for part in partitions],
            [info.name for info in graph.outputs],
            _constants(graph, partitions),
        )

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Inputs, overridable initializers, captured values, in this order, to outputs.

        Raises:
            InvalidGraph: A mapped file has changed, so that the outputs may be wrong.
        """
        if self.specialized is not None:
            plan = self.specialized.find(inputs)
            if plan is not None:
                return plan.run(inputs)
        if self._program.hands_on:
            return self.run_bound(inputs, (None,) * len(self._program.outputs))
        if self.watch is None:
            return self._program.run(inputs)
        self.watch.require_unchanged()
        outputs = self._program.run(inputs)
        self.watch.require_unchanged()
        return outputs

    def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> Sequence[Value]:
        """As `run`, from and to tensors of devices.

        Args:
            inputs: Arrays and device tensors.
            places: Of each output, as in `SupportsBoundRuns.run_bound`.

        Raises:
            InvalidGraph: As `run`.
            InvalidArgument: An output has another type or shape than its place.
        """
        from ort_lite.execution.bound_runs import run_bound  # noqa: PLC0415 - lazy: rare

        if self.watch is None:
            return run_bound(self._program, inputs, places)
        self.watch.require_unchanged()
        outputs = run_bound(self._program, inputs, places)
        self.watch.require_unchanged()
        return outputs

    def signature(self, weights: Mapping[str, Tensor]) -> Signature:
        """Inputs and outputs of a session that runs this graph.

        Args:
            weights: The model's initializers, among them those that a run may override.
        """
        return Signature.of(self.graph, weights)

    def forget_weights(self, stripped: dict[Graph, Graph] | None = None) -> None:
        """Let go of the weights that no compiled partition reads; nothing is written after it.

        Args:
            stripped: See `Graph.without_constants`.
        """
        stripped = {} if stripped is None else stripped
        for partition in self.partitions:
            partition.compiled.forget_source()
            for body in partition.bodies.values():
                body.forget_weights(stripped)
        self.partitions = tuple(
            replace(part, graph=part.graph.without_constants(stripped)) for part in self.partitions
        )
        self.graph = self.graph.without_constants(stripped)

    def release(self) -> None:
        """Release every partition and stop watching its files."""
        if self.specialized is not None:
            self.specialized.release()
        for partition in self.partitions:
            partition.release()
        if self.watch is not None:
            self.watch.close()


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


def prepare(graph: Graph, rules: PreparationRules, runs: float = 1.0) -> PreparedGraph:
    """Partition `graph` among the EPs and compile every partition.

    An EP that turns out not to be able to compile some nodes loses them to the next EP; the
    rest is partitioned anew, and what was compiled already is kept where it is unchanged.

    Args:
        graph: Resolved, with the types that inference found.
        rules: The EPs, and how they are used.
        runs: How often the graph is expected to run in one run of the session.

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
    for _ in range(ROUNDS):
        try:
            assignment = assign(
                graph, rules.eps, declined=declined, fixed=fixed, unasked=unasked, judge=judge
            )
            if judge is not None and not (rules.ordered or declined or graph.is_body):
                from ort_lite.planning.whole_graph import keep_whole  # noqa: PLC0415 - lazy: reload

                assignment = keep_whole(graph, rules.eps, assignment, judge)
            if rules.reloaded:
                from ort_lite.planning.reloaded_parts import find_unanswered  # noqa: PLC0415 - lazy: reload

                unanswered = find_unanswered(graph, rules.eps, assignment.parts)
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

            named_bodies[i, key] = prepare(body, rules, runs * expected_runs(subgraph, i))
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


def _constants(graph: Graph, partitions: Sequence[Partition]) -> dict[str, Value]:
    """Values of graph outputs, and of partition inputs, that are constants."""
    names = [info.name for info in graph.outputs]
    names += [name for part in partitions for name in part.inputs]
    constants: dict[str, Value] = {}
    for name in dict.fromkeys(names):
        constant = graph.constant(name) if graph.producer(name) is None else None
        if constant is not None:
            constants[name] = to_numpy(constant)
    return constants

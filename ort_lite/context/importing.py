"""EPContext nodes to compiled partitions: examined, found to fit, imported by their EP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.examination import examine, parse_node
from ort_lite.context.mending import recompile
from ort_lite.context.nodes import interface, is_context_node, without_output_shapes
from ort_lite.context.verdict import require_fit
from ort_lite.execution_provider import SupportsEpContext
from ort_lite.session_log import get_logger
from ort_lite.status import EPFail, InvalidGraph, load_canceled
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.onnx_model import Node
    from ort_lite.context.early_examination import EarlyExamination
    from ort_lite.context.examination import Examined
    from ort_lite.context.modules_beside import ModulesBeside
    from ort_lite.context.payload_store import PayloadStore
    from ort_lite.execution_provider import CompiledPartition, ExecutionProvider, PartitionIo
    from ort_lite.model.graph import Graph
    from ort_lite.options import SessionOptions
    from ort_lite.start.load_clock import LoadClock

    Probe = Callable[[EpContextNode, Examined, PartitionIo], None]
    """Lets a payload through, or raises: what a session asks before it imports one."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An EPContext node that runs now.

    Attributes:
        index: Of the node in its graph.
        owner: Which of the session's EPs has it.
    """

    index: int
    node: EpContextNode
    owner: int
    ep: ExecutionProvider
    compiled: CompiledPartition


@dataclass(frozen=True, slots=True)
class Examiner:
    """Examines nodes, or says what was found meanwhile."""

    store: PayloadStore
    primaries: Sequence[EpContextNode]
    options: SessionOptions
    early: EarlyExamination | None

    def of(self, node: Node, parsed: EpContextNode) -> Examined:
        """What the files say about a node.

        Raises:
            InvalidGraph: As `examine`.
        """
        found = self.early.of(node) if self.early is not None else None
        if found is None:
            found = examine(parsed, self.store, self.primaries, self.options)
        return found


class Importer:
    """Imports the EPContext nodes of one model's graphs; used by one thread at a time.

    Attributes:
        imported: Every node so far.
    """

    def __init__(
        self,
        described: str,
        eps: Sequence[ExecutionProvider],
        examiner: Examiner,
        clock: LoadClock,
        probe: Probe | None = None,
        beside: ModulesBeside | None = None,
    ) -> None:
        """Remember what importing needs.

        Args:
            described: The model in a message.
            eps: Of the session, in order of preference.
            examiner: Of this model's nodes, under the session's options.
            clock: Told how long each step takes.
            probe: Called before a payload is imported; raises where it must not be.
            beside: Begun when the first payload goes to an EP.
        """
        self._described = described
        self._eps = {ep.name: (i, ep) for i, ep in enumerate(eps)}
        self._examiner = examiner
        self._clock = clock
        self._probe = probe
        self._beside = beside
        self._sizes = _largest(examiner.primaries)
        self._reserved: set[str] = set()
        self.imported: list[EpContextNode] = []

    def import_all(self, graph: Graph) -> tuple[Imported, ...]:
        """Every EPContext node of `graph`; bodies in it are graphs of their own.

        The context with the largest `max_size` is first: others of its EP may then use its
        working memory.

        Raises:
            InvalidGraph: Anything is wrong with a payload, its node or its fit to this machine;
                nothing stays imported.
            NotImplemented: A node's source is no EP of this session.
            ModelLoadCanceled: The caller asked to stop.
        """
        nodes = [
            (index, parse_node(node, self._described))
            for index, node in enumerate(graph.nodes)
            if is_context_node(node)
        ]
        found: list[Imported] = []
        try:
            for index, node in sorted(nodes, key=lambda one: -one[1].max_size):
                found.append(self._one(graph, index, node))
                self._stop_if_canceled()
        except BaseException:
            release_all(found)
            raise
        return tuple(found)

    def _stop_if_canceled(self) -> None:
        if self._examiner.options.canceled():
            raise load_canceled()

    def _one(self, graph: Graph, index: int, node: EpContextNode) -> Imported:
        _, ep = self._owner(node)
        if not isinstance(ep, SupportsEpContext):
            raise NotImplementedByAny(self._unclaimed(node))
        raw = graph.nodes[index]
        found = self._checked(raw, node, ep)
        io = interface(graph, raw)
        try:
            return self._taken(index, node, found, io)
        except InvalidGraph as exc:
            loose = without_output_shapes(io, graph)
            if found.notes is not None or exc.reason != Reason.SHAPE or loose == io:
                raise
            log.warning("%s: %s; the shapes are taken as wrongly declared", node.name, exc.message)
            return self._taken(index, node, found, loose)

    def _taken(self, index: int, node: EpContextNode, found: Examined, io: PartitionIo) -> Imported:
        owner, ep = self._owner(node)
        assert isinstance(ep, SupportsEpContext), "_one saw to it"
        if self._probe is not None:
            with self._clock.phase("probe"):
                self._probe(node, found, io)
        self._reserve(node.source, ep)
        self._clock.payload_bytes += len(found.payload.data)
        if self._beside is not None:
            self._beside.begin()
        with self._clock.phase("vendor import"):
            compiled = _compiled(node, found, ep, io)
        self.imported.append(node)
        return Imported(index=index, node=node, owner=owner, ep=ep, compiled=compiled)

    def _checked(self, raw: Node, node: EpContextNode, ep: SupportsEpContext) -> Examined:
        with self._clock.phase("payload digest"):
            found = self._examiner.of(raw, node)
        with self._clock.phase("verdict"):
            warning = require_fit(node, found, ep, self._examiner.options, file=self._described)
        if warning:
            log.warning("%s: %s: %s", self._described, node.name, warning)
        return found

    def _reserve(self, source: str, ep: ExecutionProvider) -> None:
        """Tell an EP, once, how much working memory its contexts need."""
        if source in self._sizes and source not in self._reserved:
            from ort_lite.context.max_size import SharesWorkingMemory  # noqa: PLC0415 - lazy: rare

            self._reserved.add(source)
            if isinstance(ep, SharesWorkingMemory):
                ep.reserve(self._sizes[source])

    def _owner(self, node: EpContextNode) -> tuple[int, ExecutionProvider]:
        found = self._eps.get(node.source)
        if found is None:
            raise NotImplementedByAny(self._unclaimed(node))
        return found

    def _unclaimed(self, node: EpContextNode) -> str:
        names = ", ".join(self._eps)
        return (
            f"EPContext node generated by '{node.source or '(unknown)'}' is not compatible with "
            f"any execution provider added to the session. EPContext node name: '{node.name}'. "
            f"Available session execution providers: [{names}]."
        )


def _largest(primaries: Sequence[EpContextNode]) -> dict[str, int]:
    if not any(node.max_size for node in primaries):
        return {}
    from ort_lite.context.max_size import largest  # noqa: PLC0415 - lazy: rare

    return largest(primaries)


def release_all(imported: Sequence[Imported]) -> None:
    """Give back what is not going to run after all."""
    for one in imported:
        one.compiled.release()


def _compiled(
    node: EpContextNode, found: Examined, ep: SupportsEpContext, io: PartitionIo
) -> CompiledPartition:
    """The partition; a payload that cannot be loaded is INVALID_GRAPH, whatever the EP says.

    Raises:
        InvalidGraph: With the node's name, both identities and what mends it.
    """
    try:
        if found.payload.weights is None:
            return ep.import_model(found.payload.data, io)
        from ort_lite.context.shared_weights import SupportsWeightSharing  # noqa: PLC0415 - lazy: rare

        assert isinstance(ep, SupportsWeightSharing), "require_fit saw to it"
        return ep.import_shared(found.payload.data, found.payload.weights, io)
    except (InvalidGraph, EPFail) as exc:
        known = exc if isinstance(exc, InvalidGraph) else InvalidGraph(exc.message)
        reason = known.reason or Reason.VENDOR_REJECTED
        hint = known.hint or recompile(node.onnx_model_filename)
        told = "" if "(reason: " in known.message else f" (reason: {reason})"
        mend = "" if hint in known.message else f" To mend it: {hint}."
        raise InvalidGraph(
            f"EPContext node '{node.name}': {known.message}{told}{mend}",
            reason=reason,
            recorded=known.recorded or found.recorded,
            present=known.present or getattr(ep, "identity", None),
            hint=hint,
        ) from exc

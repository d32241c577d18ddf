"""Reloads a context model: EPContext nodes become partitions without a compile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.context.examination import (
    base_folder,
    context_nodes,
    examine,
    parse_node,
    primaries_of,
)
from ort_lite.context.max_size import SharesWorkingMemory, largest
from ort_lite.context.mending import recompile
from ort_lite.context.nodes import interface, is_context_node
from ort_lite.context.payload_store import PayloadStore
from ort_lite.context.shared_reading import loading
from ort_lite.context.shared_weights import SupportsWeightSharing
from ort_lite.context.verdict import require_fit
from ort_lite.execution_provider import SupportsEpContext
from ort_lite.model.loader import as_graph
from ort_lite.planning.partitioner import Part
from ort_lite.planning.preparation import Partition, prepare
from ort_lite.session_log import get_logger
from ort_lite.status import EPFail, InvalidGraph
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.onnx_model import Node
    from ort_lite.context.early_examination import EarlyExamination
    from ort_lite.context.examination import Examined
    from ort_lite.execution_provider import CompiledPartition, ExecutionProvider, PartitionIo
    from ort_lite.load_report import LoadClock
    from ort_lite.model.graph import Graph
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.planning.preparation import PreparedGraph, Workshop

    Probe = Callable[[EpContextNode, Examined, PartitionIo], None]
    """Lets a payload through, or raises: what a session asks before it imports one."""

PROBE_KEY = "session.ep_context_probe"

log = get_logger(__name__)


def reload(
    loaded: LoadedModel,
    shop: Workshop,
    options: SessionOptions,
    clock: LoadClock,
    early: EarlyExamination | None = None,
    probe: Probe | None = None,
) -> PreparedGraph:
    """Import every payload of a context model and prepare the rest of its graph.

    Args:
        loaded: The context model.
        shop: The EPs and the session's rules.
        options: Where payloads are, and what is required of them.
        clock: Told how long each step takes.
        early: What was examined meanwhile, under the same options; stays the caller's.
        probe: Called before a payload is imported; raises where it must not be.

    Raises:
        InvalidGraph: Anything is wrong with a payload, its node or its fit to this machine;
            `.reason` says what, and nothing falls back.
        NotImplemented: A node's source is no EP of this session.
    """
    base = base_folder(loaded.path, options)
    with (
        loading(options) as workspace,
        PayloadStore(base, loaded.path, options, workspace) as store,
    ):
        primaries = primaries_of(context_nodes(loaded))
        importer = _Importer(
            loaded, shop, options, _Examiner(store, primaries, options, early), clock
        )
        importer.probe = probe
        prepared = prepare(as_graph(loaded.model), replace(shop, settle=importer.settle))
        for node in importer.imported:
            store.taken(node)
    return prepared


def _imported(
    node: EpContextNode, found: Examined, ep: SupportsEpContext, io: PartitionIo
) -> CompiledPartition:
    """The partition; a payload that cannot be loaded is INVALID_GRAPH, whatever the EP says.

    Raises:
        InvalidGraph: With the node's name, both identities and what mends it.
    """
    try:
        if found.payload.weights is None:
            return ep.import_model(found.payload.data, io)
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


@dataclass(frozen=True, slots=True)
class _Examiner:
    """Examines nodes, or says what was found meanwhile."""

    store: PayloadStore
    primaries: Sequence[EpContextNode]
    options: SessionOptions
    early: EarlyExamination | None

    def of(self, node: Node, parsed: EpContextNode) -> Examined:
        found = self.early.of(node) if self.early is not None else None
        if found is None:
            found = examine(parsed, self.store, self.primaries, self.options)
        return found


class _Importer:
    """Turns the EPContext nodes of one graph into partitions."""

    def __init__(
        self,
        loaded: LoadedModel,
        shop: Workshop,
        options: SessionOptions,
        examiner: _Examiner,
        clock: LoadClock,
    ) -> None:
        self._loaded = loaded
        self._clock = clock
        self._eps = {ep.name: (i, ep) for i, ep in enumerate(shop.eps)}
        self._options = options
        self._examiner = examiner
        self._sizes = largest(examiner.primaries)
        self._reserved: set[str] = set()
        self.probe: Probe | None = None
        self.imported: list[EpContextNode] = []

    def settle(self, graph: Graph) -> Mapping[Part, Partition]:
        """Every EPContext node of `graph` as a partition of its own.

        The context with the largest `max_size` is first: others of its EP may then use its
        working memory.
        """
        nodes = [
            (index, parse_node(node, self._loaded.described))
            for index, node in enumerate(graph.nodes)
            if is_context_node(node)
        ]
        found: dict[Part, Partition] = {}
        try:
            for index, node in sorted(nodes, key=lambda one: -one[1].max_size):
                part, partition = self._partition(graph, index, node)
                found[part] = partition
        except BaseException:
            for partition in found.values():
                partition.release()
            raise
        return found

    def _partition(self, graph: Graph, index: int, node: EpContextNode) -> tuple[Part, Partition]:
        owner, ep = self._owner(node)
        if not isinstance(ep, SupportsEpContext):
            raise NotImplementedByAny(self._unclaimed(node))
        found = self._checked(graph.nodes[index], node, ep)
        subgraph = graph.extract([index], node.name)
        io = interface(graph, graph.nodes[index])
        if self.probe is not None:
            with self._clock.phase("probe"):
                self.probe(node, found, io)
        self._reserve(node.source, ep)
        self._clock.payload_bytes += len(found.payload.data)
        with self._clock.phase("vendor import"):
            compiled = _imported(node, found, ep, io)
        self.imported.append(node)
        partition = Partition(
            ep=ep,
            name=node.partition_name or node.name,
            nodes=(index,),
            graph=subgraph,
            compiled=compiled,
            inputs=node.inputs,
            outputs=node.outputs,
            origin="context",
        )
        return Part(owner, (index,)), partition

    def _checked(self, raw: Node, node: EpContextNode, ep: SupportsEpContext) -> Examined:
        with self._clock.phase("payload digest"):
            found = self._examiner.of(raw, node)
        with self._clock.phase("verdict"):
            file = self._loaded.described
            warning = require_fit(node, found, ep, self._options, file=file)
        if warning:
            log.warning("%s: %s: %s", self._loaded.described, node.name, warning)
        return found

    def _reserve(self, source: str, ep: ExecutionProvider) -> None:
        """Tell an EP, once, how much working memory its contexts need."""
        if source in self._sizes and source not in self._reserved:
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

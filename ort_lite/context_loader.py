"""Reloads a context model: EPContext nodes become partitions without a compile."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError, Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.notes import read_notes
from ort_lite.context_nodes import all_nodes, is_context_node
from ort_lite.context_target import PATH_KEY
from ort_lite.execution_provider import (
    CompiledModelCompatibility,
    PartitionIo,
    SupportsEpContext,
)
from ort_lite.model_loader import as_graph
from ort_lite.partitioner import Part
from ort_lite.payload_store import PayloadStore
from ort_lite.preparation import Partition, prepare
from ort_lite.shared_reading import loading
from ort_lite.shared_weights import SupportsWeightSharing
from ort_lite.status import EPFail, Fail, InvalidGraph
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.notes import ContextNotes
    from ctx_formats.onnx_model import Node
    from ort_lite.early_examination import EarlyExamination
    from ort_lite.execution_provider import CompiledPartition, ExecutionProvider
    from ort_lite.graph import Graph
    from ort_lite.load_report import LoadClock
    from ort_lite.model_loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.payload_store import Payload
    from ort_lite.preparation import PreparedGraph, Workshop

log = logging.getLogger(__name__)

DIGEST_KEY = "session.require_payload_digest"
SUBOPTIMAL_KEY = "session.fail_on_suboptimal_compiled_model"
RECOMPILE = "compile the model again on this machine: ort-lite compile MODEL"


def reload(
    loaded: LoadedModel,
    shop: Workshop,
    options: SessionOptions,
    clock: LoadClock,
    early: EarlyExamination | None = None,
    probe: Callable[[EpContextNode, Examined, PartitionIo], None] | None = None,
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
    with loading(options) as workspace:
        store = PayloadStore(base_folder(loaded.path, options), loaded.path, options, workspace)
        examiner = _Examiner(store, _primaries(loaded), options, early)
        importer = _Importer(loaded, shop, options, examiner, clock)
        importer.probe = probe
        try:
            prepared = prepare(as_graph(loaded.model), replace(shop, settle=importer.settle))
            for node in importer.imported:
                store.taken(node)
        finally:
            store.close()
    return prepared


def base_folder(path: Path | None, options: SessionOptions) -> Path | None:
    """The folder that payload paths are relative to: `ep.context_file_path` wins."""
    given = options.config.get(PATH_KEY, "")
    if given:
        return Path(given).parent
    return path.parent if path is not None else None


def parse_node(node: Node, file: str) -> EpContextNode:
    """An EPContext node.

    Raises:
        InvalidGraph: It is malformed.
    """
    try:
        return EpContextNode.from_node(node)
    except FormatError as exc:
        raise refused(exc.in_file(file)) from exc


def refused(exc: FormatError, *, recorded: HardwareIdentity | None = None) -> InvalidGraph:
    """A file's problem as the session's error, with what mends it."""
    hint = _HINTS.get(exc.reason, "compile the model again: ort-lite compile MODEL")
    return InvalidGraph(
        f"{exc} (reason: {exc.reason}). To mend it: {hint}.",
        reason=exc.reason,
        recorded=recorded,
        hint=hint,
    )


_HINTS = {
    Reason.MISSING_PAYLOAD: (
        "put the payload file beside the model, or name the model's folder through "
        "ep.context_file_path, or compile the model again: ort-lite compile MODEL"
    ),
    Reason.UNSAFE_PATH: "keep the payload beside the model; get the files from a source you trust",
}


def recorded_identity(node: EpContextNode, notes: ContextNotes | None) -> HardwareIdentity:
    """What the payload was built for; a foreign node tells less.

    The node's attributes win over the notes: they are what other tools read and edit.
    """
    identity = notes.identity if notes is not None else HardwareIdentity()
    changes = {}
    if node.ep_sdk_version:
        changes["sdk_version"] = node.ep_sdk_version
    if node.hardware_architecture:
        changes["architecture"] = node.hardware_architecture
    return replace(identity, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the files say about one node, before any SDK is asked.

    Attributes:
        payload: Every byte is what was written, where that was recorded.
        seal: Set where the node's attributes are not the ones that were written; told after
            the identity, which says better what an edited version means.
    """

    payload: Payload
    notes: ContextNotes | None
    recorded: HardwareIdentity
    seal: FormatError | None


def examine(
    node: EpContextNode,
    store: PayloadStore,
    primaries: Sequence[EpContextNode],
    options: SessionOptions,
) -> Examined:
    """Check all that the files alone decide; a session and a check without one share it.

    Raises:
        InvalidGraph: The payload is missing, misplaced or damaged.
    """
    notes: ContextNotes | None = None
    seal: FormatError | None = None
    try:
        notes = read_notes(node)
    except FormatError as exc:
        seal = exc
    recorded = recorded_identity(node, notes)
    try:
        payload = store.payload(node, notes, primaries, require_digest=options.flag(DIGEST_KEY))
    except FormatError as exc:
        raise refused(exc, recorded=recorded) from exc
    return Examined(payload=payload, notes=notes, recorded=recorded, seal=seal)


def check_identity(
    node: EpContextNode, recorded: HardwareIdentity, ep: SupportsEpContext, options: SessionOptions
) -> str:
    """Compare what a payload was built for with what is here; a warning text, or "".

    Raises:
        InvalidGraph: It does not run here.
        Fail: It runs, but not at its best, and `session.fail_on_suboptimal_compiled_model`.
    """
    verdict = ep.check_compatibility(recorded)
    if verdict.verdict == CompiledModelCompatibility.EP_UNSUPPORTED:
        present = getattr(ep, "identity", None)
        hint = RECOMPILE
        raise InvalidGraph(
            f"EPContext node '{node.name}' was compiled for something else: {verdict.message} "
            f"(reason: {verdict.reason}). To mend it: {hint}.",
            reason=verdict.reason or Reason.VENDOR_REJECTED,
            recorded=recorded,
            present=present,
            hint=hint,
        )
    if verdict.verdict == CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION:
        if options.flag(SUBOPTIMAL_KEY):
            raise Fail(
                f"Compiled model is suboptimal for execution provider: {node.source}. "
                f"Recompilation recommended for better performance. {verdict.message}"
            )
        return verdict.message
    return ""


def _imported(
    node: EpContextNode, found: Examined, ep: SupportsEpContext, io: PartitionIo
) -> CompiledPartition:
    """The partition; a payload that cannot be loaded is INVALID_GRAPH, whatever the EP says.

    Raises:
        InvalidGraph: With the node's name, both identities and what mends it.
    """
    try:
        return _handed_over(node, found.payload, ep, io)
    except (InvalidGraph, EPFail) as exc:
        known = exc if isinstance(exc, InvalidGraph) else InvalidGraph(exc.message)
        reason = known.reason or Reason.VENDOR_REJECTED
        told = "" if "(reason: " in known.message else f" (reason: {reason})"
        raise InvalidGraph(
            f"EPContext node '{node.name}': {known.message}{told}",
            reason=reason,
            recorded=known.recorded or found.recorded,
            present=known.present or getattr(ep, "identity", None),
            hint=known.hint or RECOMPILE,
        ) from exc


def _handed_over(
    node: EpContextNode, payload: Payload, ep: SupportsEpContext, io: PartitionIo
) -> CompiledPartition:
    if payload.weights is None:
        return ep.import_model(payload.data, io)
    if not isinstance(ep, SupportsWeightSharing):
        raise InvalidGraph(
            f"the payload refers to shared weights, and this {node.source} takes none",
            reason=Reason.FORMAT,
        )
    return ep.import_shared(payload.data, payload.weights, io)


def context_nodes(loaded: LoadedModel) -> tuple[tuple[Node, EpContextNode], ...]:
    """Every EPContext node of a model, as it is in the graph and parsed.

    Raises:
        InvalidGraph: One is malformed.
    """
    return tuple(
        (node, parse_node(node, loaded.described))
        for node in all_nodes(loaded.model.graph)
        if is_context_node(node)
    )


def _primaries(loaded: LoadedModel) -> tuple[EpContextNode, ...]:
    return tuple(parsed for _, parsed in context_nodes(loaded) if parsed.main_context)


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
        self.probe: Callable[[EpContextNode, Examined, PartitionIo], None] | None = None
        self.imported: list[EpContextNode] = []

    def settle(self, graph: Graph) -> Mapping[Part, Partition]:
        """Every EPContext node of `graph` as a partition of its own."""
        found: dict[Part, Partition] = {}
        try:
            for index, node in enumerate(graph.nodes):
                if is_context_node(node):
                    part, partition = self._partition(graph, index)
                    found[part] = partition
        except BaseException:
            for partition in found.values():
                partition.release()
            raise
        return found

    def _partition(self, graph: Graph, index: int) -> tuple[Part, Partition]:
        node = parse_node(graph.nodes[index], self._loaded.described)
        owner, ep = self._owner(node)
        if not isinstance(ep, SupportsEpContext):
            raise NotImplementedByAny(self._unclaimed(node))
        found = self._checked(graph.nodes[index], node, ep)
        subgraph = graph.extract([index], node.name)
        io = PartitionIo(
            inputs=tuple(graph.info(name) for name in node.inputs),
            outputs=tuple(graph.info(name) for name in node.outputs),
        )
        if self.probe is not None:
            with self._clock.phase("probe"):
                self.probe(node, found, io)
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
            warning = check_identity(node, found.recorded, ep, self._options)
        if found.seal is not None:
            raise refused(found.seal.in_file(self._loaded.described), recorded=found.recorded)
        if warning:
            log.warning("%s: %s: %s", self._loaded.described, node.name, warning)
        return found

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

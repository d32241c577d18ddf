"""Reloads a context model: EPContext nodes become partitions without a compile."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING

from ctx_formats.errors import FileChangedError, Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.context.keys import SHARE_KEY
from ort_lite.context.nodes import interface, is_context_node, without_output_shapes
from ort_lite.context.payload_checks import PayloadChecks, parse_node
from ort_lite.context.verdict import require_fit
from ort_lite.ep.interface import SupportsEpContext
from ort_lite.model.loader import as_graph
from ort_lite.session_log import get_logger
from ort_lite.shortages import start_helper
from ort_lite.status import EPFail, InvalidGraph, load_canceled
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.onnx_model import Model, Node
    from ort_lite.context.payload_checks import CheckedNode
    from ort_lite.context.payload_store import PayloadStore
    from ort_lite.context.watched_files import WatchedFiles
    from ort_lite.ep.interface import CompiledPartition, ExecutionProvider, PartitionIo
    from ort_lite.model.graph import Graph
    from ort_lite.model.loader import LoadedModel
    from ort_lite.planning.partitioner import Part
    from ort_lite.planning.prepared_graph import Partition, PreparedGraph
    from ort_lite.start.load_request import LoadRequest

    Probe = Callable[[EpContextNode, CheckedNode, PartitionIo], None]
    """Called before a payload is imported; raises where it must not be."""

log = get_logger(__name__)

NEEDED_AFTER_IMPORT = (
    "ort_lite.planning.preparation",
    "ort_lite.planning.placement",
)
"""Modules that a session needs once its payloads are imported, and what they import."""


def reload(loaded: LoadedModel, request: LoadRequest, probe: Probe | None = None) -> PreparedGraph:
    """Import every payload of a context model and prepare the rest of its graph.

    While an EP imports without the GIL, a thread imports the modules that the rest needs
    (docs/adr/0023-importing-modules-in-a-thread.md).

    Args:
        loaded: The context model.
        request: EPs, options and what has been checked already.
        probe: Called before a payload is imported; raises where it must not be.

    Raises:
        InvalidGraph: Anything is wrong with a payload, its node or its fit to this machine;
            `.reason` says what, and nothing falls back.
        NotImplemented: A node's source is not an EP of this session.
    """
    options = request.options
    with ExitStack() as undo:
        group = None
        if options.flag(SHARE_KEY):
            from ort_lite.context.shared_contexts import open_for_loading  # noqa: PLC0415 - lazy: rare

            group = undo.enter_context(open_for_loading(options))
        checks = request.early
        if checks is None or group is not None:
            checks = undo.enter_context(PayloadChecks(loaded, options, group))
        background = _background_importer(checks.primaries, request.eps)
        if background is not None:
            undo.callback(background.begin)  # otherwise the thread would never exit
        importer = Importer(request, checks, probe, background)
        prepared = _prepare(as_graph(_with_shown_types(loaded.model)), request, importer)
        try:
            prepared.watch = _watch(checks.store)
        except BaseException as exc:
            prepared.release()
            if isinstance(exc, FileChangedError):
                from ort_lite.context.hints import refusal_of  # noqa: PLC0415 - lazy: rare

                raise refusal_of(exc, "", None) from exc
            raise
        for node in importer.imported:
            checks.store.mark_taken(node)
    return prepared


def _watch(store: PayloadStore) -> WatchedFiles | None:
    """A watch over the payload files that are mapped; None if none is.

    Raises:
        FileChangedError: Another process has written to one since it was opened.
    """
    store.require_unchanged()
    files = store.to_watch()
    if not files:
        return None
    from ort_lite.context.watched_files import WatchedFiles  # noqa: PLC0415 - lazy: rare

    return WatchedFiles(files)


def _with_shown_types(model: Model) -> Model:
    """The model with the output types that the session of the plain model shows."""
    if not any(info.name in model.graph.value_info for info in model.graph.outputs):
        return model
    from ort_lite.context.graph import outputs_swapped  # noqa: PLC0415 - lazy: rare

    return replace(model, graph=outputs_swapped(model.graph))


def _background_importer(
    primaries: Sequence[EpContextNode], eps: Sequence[ExecutionProvider]
) -> BackgroundImporter | None:
    """An importer of the modules that a session needs after a payload's import.

    None if all are imported, or where every EP holds the GIL during an import.
    """
    sources = {node.source for node in primaries}
    hints = [ep.startup_hints for ep in eps if ep.name in sources and ep.startup_hints]
    own = [name for hint in hints for name in hint.modules_after_import]
    missing = [name for name in (*NEEDED_AFTER_IMPORT, *own) if name not in sys.modules]
    return BackgroundImporter(missing) if hints and missing else None


def _prepare(graph: Graph, request: LoadRequest, importer: Importer) -> PreparedGraph:
    imported = importer.import_all(graph)
    try:
        from ort_lite.planning.preparation import prepare  # noqa: PLC0415 - lazy: reload

        first, rules = _partitions(graph, imported), request.preparation_rules()
    except BaseException:
        release_all(imported)
        raise

    def import_partitions(part: Graph) -> Mapping[Part, Partition]:
        return first if part is graph else _partitions(part, importer.import_all(part))

    return prepare(graph, replace(rules, import_partitions=import_partitions))


def _partitions(graph: Graph, imported: Sequence[Imported]) -> dict[Part, Partition]:
    from ort_lite.planning.partitioner import Part  # noqa: PLC0415 - lazy: reload

    return {Part(node.owner, (node.index,)): _partition(graph, node) for node in imported}


def _partition(graph: Graph, imported: Imported) -> Partition:
    from ort_lite.planning.preparation import guard  # noqa: PLC0415 - lazy: reload
    from ort_lite.planning.prepared_graph import Partition  # noqa: PLC0415 - lazy: reload

    node = imported.node
    name = node.partition_name or node.name
    own = graph.extract([imported.index], node.name)
    return Partition(
        ep=imported.ep,
        name=name,
        nodes=(imported.index,),
        graph=own,
        compiled=imported.compiled,
        inputs=node.inputs,
        outputs=node.outputs,
        origin="context",
        empty=guard(imported.ep, name, own),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An EPContext node and the partition that its EP imported.

    Attributes:
        index: Position of the node in its graph.
        owner: Position of the EP among the session's.
    """

    index: int
    node: EpContextNode
    owner: int
    ep: ExecutionProvider
    compiled: CompiledPartition


class Importer:
    """Imports the EPContext nodes of one model's graphs; used by one thread at a time.

    Attributes:
        imported: Every node that has been imported.
    """

    def __init__(
        self,
        request: LoadRequest,
        checks: PayloadChecks,
        probe: Probe | None = None,
        background: BackgroundImporter | None = None,
    ) -> None:
        """Import nothing yet.

        Args:
            request: EPs, options and clock.
            checks: Of this model's nodes.
            probe: Called before a payload is imported; raises where it must not be.
            background: Begun when the first payload goes to an EP.
        """
        self._model = checks.loaded.description
        self._eps = {ep.name: (i, ep) for i, ep in enumerate(request.eps)}
        self._options = request.options
        self._clock = request.clock
        self._checks = checks
        self._probe = probe
        self._background = background
        self._sizes = _largest_sizes(checks.primaries)
        self._reserved: set[str] = set()
        self.imported: list[EpContextNode] = []

    def import_all(self, graph: Graph) -> tuple[Imported, ...]:
        """Every EPContext node of `graph`; bodies in it are graphs of their own.

        The context with the largest `max_size` is first: others of its EP may then use its
        working memory.

        Raises:
            InvalidGraph: Anything is wrong with a payload, its node or its fit to this machine;
                nothing stays imported.
            NotImplemented: A node's source is not an EP of this session.
            ModelLoadCanceled: The caller asked to stop.
        """
        nodes = [
            (index, parse_node(node, self._checks.loaded))
            for index, node in enumerate(graph.nodes)
            if is_context_node(node)
        ]
        imported: list[Imported] = []
        checked = self._check_together(graph, nodes) if len(nodes) > 1 else {}
        try:
            for index, node in sorted(nodes, key=lambda one: -one[1].max_size):
                imported.append(self._import_node(graph, index, node, checked.get(index)))
                self._stop_if_canceled()
        except BaseException:
            release_all(imported)
            raise
        return tuple(imported)

    def _stop_if_canceled(self) -> None:
        if self._options.is_canceled():
            raise load_canceled()

    def _check_together(
        self, graph: Graph, nodes: Sequence[tuple[int, EpContextNode]]
    ) -> dict[int, CheckedNode]:
        """The nodes of EPs that know how much memory payloads need, by index; all have room.

        Raises:
            InvalidGraph: Payloads of an EP do not fit on its device together; or a check failed.
            NotImplemented: A node's source is not an EP of this session.
        """
        from ort_lite.ep.memory_use import SupportsRoomCheck  # noqa: PLC0415 - lazy: rare

        checked: dict[int, CheckedNode] = {}
        for source in {node.source for _, node in nodes}:
            mine = [(index, node) for index, node in nodes if node.source == source]
            _, ep = self._owner(mine[0][1])
            if len(mine) < 2 or not isinstance(ep, SupportsRoomCheck):
                continue
            assert isinstance(ep, SupportsEpContext), "it has payloads"
            checked |= {i: self._check(graph.nodes[i], node, ep) for i, node in mine}
            payloads = [checked[index].payload for index, _ in mine]
            try:
                ep.require_room_to_import([(one.data, one.weights) for one in payloads])
            except EPFail as exc:
                raise InvalidGraph(
                    f"{self._model}: {exc.message} (reason: {Reason.VENDOR_REJECTED})",
                    reason=Reason.VENDOR_REJECTED,
                    present=getattr(ep, "identity", None),
                ) from exc
        return checked

    def _import_node(
        self, graph: Graph, index: int, node: EpContextNode, checked: CheckedNode | None = None
    ) -> Imported:
        _, ep = self._owner(node)
        if not isinstance(ep, SupportsEpContext):
            raise NotImplementedByAny(self._unclaimed_message(node))
        raw = graph.nodes[index]
        checked = self._check(raw, node, ep) if checked is None else checked
        io = interface(graph, raw)
        try:
            return self._import_payload(index, node, checked, io)
        except InvalidGraph as exc:
            loose = without_output_shapes(io, graph)
            if checked.notes is not None or exc.reason != Reason.SHAPE or loose == io:
                raise
            log.warning("%s: %s; the shapes are taken as wrongly declared", node.name, exc.message)
            return self._import_payload(index, node, checked, loose)

    def _import_payload(
        self, index: int, node: EpContextNode, checked: CheckedNode, io: PartitionIo
    ) -> Imported:
        owner, ep = self._owner(node)
        assert isinstance(ep, SupportsEpContext), "_import_node has checked it"
        if self._probe is not None:
            with self._clock.phase("probe"):
                self._probe(node, checked, io)
        self._reserve(node.source, ep)
        self._clock.payload_bytes += len(checked.payload.data)
        if self._background is not None:
            self._background.begin()
        with self._clock.phase("vendor import"):
            compiled = _call_import(node, checked, ep, io)
        self.imported.append(node)
        return Imported(index=index, node=node, owner=owner, ep=ep, compiled=compiled)

    def _check(self, raw: Node, node: EpContextNode, ep: SupportsEpContext) -> CheckedNode:
        with self._clock.phase("payload digest"):
            checked = self._checks.check(raw, node)
        with self._clock.phase("verdict"):
            warning = require_fit(node, checked, ep, self._options, file=self._model)
        if warning:
            log.warning("%s: %s: %s", self._model, node.name, warning)
        return checked

    def _reserve(self, source: str, ep: ExecutionProvider) -> None:
        """Announce to an EP, once, how much working memory its contexts need."""
        if source in self._sizes and source not in self._reserved:
            from ort_lite.ep.interface import SupportsMemorySharing  # noqa: PLC0415 - lazy: rare

            self._reserved.add(source)
            if isinstance(ep, SupportsMemorySharing):
                ep.reserve(self._sizes[source])

    def _owner(self, node: EpContextNode) -> tuple[int, ExecutionProvider]:
        owner = self._eps.get(node.source)
        if owner is None:
            raise NotImplementedByAny(self._unclaimed_message(node))
        return owner

    def _unclaimed_message(self, node: EpContextNode) -> str:
        names = ", ".join(self._eps)
        return (
            f"EPContext node generated by '{node.source or '(unknown)'}' is not compatible with "
            f"any execution provider added to the session. EPContext node name: '{node.name}'. "
            f"Available session execution providers: [{names}]."
        )


def _largest_sizes(primaries: Sequence[EpContextNode]) -> dict[str, int]:
    if not any(node.max_size for node in primaries):
        return {}
    from ort_lite.context.max_size import largest_sizes  # noqa: PLC0415 - lazy: rare

    return largest_sizes(primaries)


def release_all(imported: Sequence[Imported]) -> None:
    """Release partitions that are not going to run."""
    for node in imported:
        node.compiled.release()


def _call_import(
    node: EpContextNode, checked: CheckedNode, ep: SupportsEpContext, io: PartitionIo
) -> CompiledPartition:
    """The partition; a payload that cannot be loaded is INVALID_GRAPH, whatever the EP says.

    Raises:
        InvalidGraph: With the node's name, both identities and a hint.
    """
    try:
        if checked.payload.weights is None:
            return ep.import_model(checked.payload.data, io)
        from ort_lite.ep.interface import SupportsWeightSharing  # noqa: PLC0415 - lazy: rare

        assert isinstance(ep, SupportsWeightSharing), "require_fit saw to it"
        return ep.import_shared(checked.payload.data, checked.payload.weights, io)
    except (InvalidGraph, EPFail) as exc:
        from ort_lite.context.hints import recompile_hint  # noqa: PLC0415 - lazy: rare

        known = exc if isinstance(exc, InvalidGraph) else InvalidGraph(exc.message)
        reason = known.reason or Reason.VENDOR_REJECTED
        hint = known.hint or recompile_hint(checked.loaded, node.onnx_model_filename)
        shown = "" if "(reason: " in known.message else f" (reason: {reason})"
        mend = "" if hint in known.message else f" To fix this: {hint}"
        raise InvalidGraph(
            f"EPContext node '{node.name}': {known.message}{shown}{mend}",
            reason=reason,
            recorded=_merge_identities(checked.recorded, known.recorded),
            present=known.present or getattr(ep, "identity", None),
            hint=hint,
        ) from exc


def _merge_identities(
    recorded: HardwareIdentity, payload: HardwareIdentity | None
) -> HardwareIdentity:
    """What the node recorded, with the fields that the EP has read in the payload itself."""
    fields = payload.to_mapping() if payload is not None else {}
    return HardwareIdentity.from_mapping({**recorded.to_mapping(), **fields})


class BackgroundImporter:
    """Imports modules in a background thread once `begin` is called.

    Code that needs one of them meanwhile waits for it, by Python's import locks. The thread starts
    early and waits: a new thread would take the GIL just when the calling thread is about to
    release it.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Start the thread, which waits for `begin`.

        Args:
            names: Of modules, in the order in which to import them.
        """
        self._names = names
        self._begun = Event()
        start_helper(self._run, "ort_lite modules")

    def begin(self) -> None:
        """Let the thread import; a second call does nothing."""
        self._begun.set()

    def _run(self) -> None:
        self._begun.wait()
        for name in self._names:
            with suppress(Exception):  # the code that needs the module gets the error
                import_module(name)

"""Reloads a context model: EPContext nodes become partitions without a compile."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ctx_formats.errors import FileChangedError
from ctx_formats.lean_dataclass import replace
from ort_lite.context.examination import base_folder, context_nodes, primaries_of
from ort_lite.context.importing import Examiner, Importer, release_all
from ort_lite.context.keys import SHARE_KEY
from ort_lite.context.mending import refused
from ort_lite.context.modules_beside import ModulesBeside
from ort_lite.context.payload_store import PayloadStore
from ort_lite.model.loader import as_graph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.onnx_model import Model
    from ort_lite.context.early_examination import EarlyExamination
    from ort_lite.context.importing import Imported, Probe
    from ort_lite.context.watched_files import WatchedFiles
    from ort_lite.execution_provider import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.planning.partitioner import Part
    from ort_lite.planning.preparation import Partition, PreparationRules, PreparedGraph
    from ort_lite.start.load_clock import LoadClock

    class Terms(Protocol):
        """What a context model is reloaded with."""

        @property
        def eps(self) -> Sequence[ExecutionProvider]:
            """Of the session, in order of preference."""

        @property
        def options(self) -> SessionOptions:
            """Where payloads are, and what is required of them."""

        @property
        def clock(self) -> LoadClock:
            """Told how long each step takes."""

        @property
        def early(self) -> EarlyExamination | None:
            """What was examined meanwhile, under the same options; stays the caller's."""

        def preparation_rules(self) -> PreparationRules:
            """The EPs and the session's rules, for preparing."""


NEEDED_AFTER_IMPORT = (
    "ort_lite.planning.preparation",
    "ort_lite.planning.placement",
)
"""Modules that a session needs once its payloads are imported, and what they import."""


def reload(loaded: LoadedModel, terms: Terms, probe: Probe | None = None) -> PreparedGraph:
    """Import every payload of a context model and prepare the rest of its graph.

    Where an EP leaves the interpreter's lock to others, what the rest needs is imported meanwhile
    (docs/adr/0023-importing-beside-the-session.md).

    Args:
        loaded: The context model.
        terms: Of the session.
        probe: Called before a payload is imported; raises where it must not be.

    Raises:
        InvalidGraph: Anything is wrong with a payload, its node or its fit to this machine;
            `.reason` says what, and nothing falls back.
        NotImplemented: A node's source is no EP of this session.
    """
    options = terms.options
    base = base_folder(loaded.path, options)
    with ExitStack() as undo:
        group = None
        if options.flag(SHARE_KEY):
            from ort_lite.context.shared_contexts import loading  # noqa: PLC0415 - few sessions share

            group = undo.enter_context(loading(options))
        store = PayloadStore(base, loaded.path, options, group, proof=loaded.proof)
        undo.enter_context(store)
        primaries = primaries_of(context_nodes(loaded))
        examiner = Examiner(store, primaries, options, terms.early)
        beside = _beside(primaries, terms.eps)
        if beside is not None:
            undo.callback(beside.begin)  # else its thread would wait for ever
        importer = Importer(loaded.described, terms.eps, examiner, terms.clock, probe, beside)
        prepared = _prepared(as_graph(_as_shown(loaded.model)), terms, importer)
        try:
            prepared.watch = _watch(store if terms.early is None else terms.early.store, store)
        except BaseException as exc:
            prepared.release()
            if isinstance(exc, FileChangedError):
                raise refused(exc, "") from exc
            raise
        for node in importer.imported:
            store.mark_taken(node)
    return prepared


def _watch(*stores: PayloadStore) -> WatchedFiles | None:
    """Over the files that the stores have mapped; None where they have mapped none.

    Raises:
        FileChangedError: Another process has written to one since it was opened.
    """
    for store in stores:
        store.require_unchanged()
    files = {id(file): file for store in stores for file in store.to_watch()}
    if not files:
        return None
    from ort_lite.context.watched_files import WatchedFiles  # noqa: PLC0415 - lazy: rare

    return WatchedFiles(files.values())


def _as_shown(model: Model) -> Model:
    """The model with the types of outputs as the session of the plain model shows them."""
    if not any(info.name in model.graph.value_info for info in model.graph.outputs):
        return model
    from ort_lite.context.graph import outputs_swapped  # noqa: PLC0415 - lazy: rare

    return replace(model, graph=outputs_swapped(model.graph))


def _beside(
    primaries: Sequence[EpContextNode], eps: Sequence[ExecutionProvider]
) -> ModulesBeside | None:
    """For modules that a session needs after an import.

    None where they are there, or where each EP keeps the interpreter's lock.
    """
    sources = {node.source for node in primaries}
    willing = [ep for ep in eps if ep.name in sources and ep.imports_without_lock]
    own = [name for ep in willing for name in ep.modules_after_import]
    missing = [name for name in (*NEEDED_AFTER_IMPORT, *own) if name not in sys.modules]
    return ModulesBeside(missing) if willing and missing else None


def _prepared(graph: Graph, terms: Terms, importer: Importer) -> PreparedGraph:
    imported = importer.import_all(graph)
    try:
        from ort_lite.planning.preparation import prepare  # noqa: PLC0415 - lazy: reload

        first, rules = _partitions(graph, imported), terms.preparation_rules()
    except BaseException:
        release_all(imported)
        raise

    def import_partitions(part: Graph) -> Mapping[Part, Partition]:
        return first if part is graph else _partitions(part, importer.import_all(part))

    return prepare(graph, replace(rules, import_partitions=import_partitions))


def _partitions(graph: Graph, imported: Sequence[Imported]) -> dict[Part, Partition]:
    from ort_lite.planning.partitioner import Part  # noqa: PLC0415 - lazy: reload

    return {Part(one.owner, (one.index,)): _partition(graph, one) for one in imported}


def _partition(graph: Graph, one: Imported) -> Partition:
    from ort_lite.planning.preparation import Partition, guard  # noqa: PLC0415 - lazy: reload

    name = one.node.partition_name or one.node.name
    own = graph.extract([one.index], one.node.name)
    return Partition(
        ep=one.ep,
        name=name,
        nodes=(one.index,),
        graph=own,
        compiled=one.compiled,
        inputs=one.node.inputs,
        outputs=one.node.outputs,
        origin="context",
        empty=guard(one.ep, name, own),
    )

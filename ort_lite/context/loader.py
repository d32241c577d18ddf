"""Reloads a context model: EPContext nodes become partitions without a compile."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.context.early_import import EarlyImport, may_import_early
from ort_lite.context.examination import base_folder, context_nodes, primaries_of
from ort_lite.context.importing import Examiner, Importer
from ort_lite.context.payload_store import PayloadStore
from ort_lite.context.shared_reading import loading
from ort_lite.model.loader import as_graph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.context.early_examination import EarlyExamination
    from ort_lite.context.importing import Imported, Probe
    from ort_lite.load_report import LoadClock
    from ort_lite.model.graph import Graph
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.planning.partitioner import Part
    from ort_lite.planning.preparation import Partition, PreparedGraph
    from ort_lite.planning.workshop import Workshop


def reload(
    loaded: LoadedModel,
    shop: Workshop,
    options: SessionOptions,
    clock: LoadClock,
    early: EarlyExamination | None = None,
    probe: Probe | None = None,
) -> PreparedGraph:
    """Import every payload of a context model and prepare the rest of its graph.

    Where the EPs allow it, payloads are imported in a thread, and what preparing needs is
    imported and done beside it (docs/adr/0023-importing-beside-the-session.md).

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
    with ExitStack() as undo:
        workspace = undo.enter_context(loading(options))
        store = undo.enter_context(PayloadStore(base, loaded.path, options, workspace))
        primaries = primaries_of(context_nodes(loaded))
        examiner = Examiner(store, primaries, options, early)
        importer = Importer(loaded.described, shop.eps, examiner, clock, probe)
        graph = as_graph(loaded.model)
        begun: EarlyImport | None = None
        apart = early is not None and early.is_apart and probe is None
        if apart and may_import_early(primaries, shop.eps):
            begun = EarlyImport(importer, graph)
            undo.callback(begun.close)
        prepared = _prepared(graph, shop, importer, begun)
        for node in importer.imported:
            store.taken(node)
    return prepared


def _prepared(
    graph: Graph,
    shop: Workshop,
    importer: Importer,
    begun: EarlyImport | None,
) -> PreparedGraph:
    from ort_lite.planning.preparation import prepare  # noqa: PLC0415 - while payloads are imported

    def settle(one: Graph) -> Mapping[Part, Partition]:
        if begun is not None and one is begun.graph:
            return _partitions(one, begun.result())
        return _partitions(one, importer.import_all(one))

    return prepare(graph, replace(shop, settle=settle))


def _partitions(graph: Graph, imported: Sequence[Imported]) -> dict[Part, Partition]:
    from ort_lite.planning.partitioner import Part  # noqa: PLC0415 - see _prepared
    from ort_lite.planning.preparation import Partition  # noqa: PLC0415 - see _prepared

    return {
        Part(one.owner, (one.index,)): Partition(
            ep=one.ep,
            name=one.node.partition_name or one.node.name,
            nodes=(one.index,),
            graph=graph.extract([one.index], one.node.name),
            compiled=one.compiled,
            inputs=one.node.inputs,
            outputs=one.node.outputs,
            origin="context",
        )
        for one in imported
    }

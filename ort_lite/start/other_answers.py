"""Answers of other execution providers to runs whose shapes a partition would compile for.

Where every run of a program has another shape, as with tokens or sounds of any length, a compile
for each takes a thousand times as long as the run. docs/adr/0064-new-shapes-answered-elsewhere.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.ep.interface import SupportsEpContext
from ort_lite.ep.other_answers import SupportsOtherAnswers
from ort_lite.planning.preparation import PreparationRules, prepare
from ort_lite.session_log import get_logger
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.planning.prepared_graph import PreparedGraph

log = get_logger(__name__)


def prepare_elsewhere(
    graph: Graph, eps: Sequence[ExecutionProvider], consequence: str
) -> PreparedGraph | None:
    """A partition's graph on other execution providers; None where they do not run all of it.

    Args:
        graph: Of a partition. Graphs whose initializers a caller may override, and those that
            read values of a surrounding graph, are left where they are.
        eps: Those that compile nothing.
        consequence: What follows from None, for the log.
    """
    if graph.overridable or graph.captured:
        return None
    try:
        return prepare(graph, PreparationRules(eps=eps))
    except OrtLiteError as exc:
        log.info("%s: nothing else runs it, so %s: %s", graph.name, consequence, exc.message)
        return None


def offer_answers(prepared: PreparedGraph, eps: Sequence[ExecutionProvider]) -> None:
    """Let partitions of a session's graph leave runs to those of `eps` that compile nothing.

    Args:
        prepared: Of the main graph.
        eps: The session's.
    """
    others = [ep for ep in eps if not isinstance(ep, SupportsEpContext)]

    def prepare_others(graph: Graph) -> PreparedGraph | None:
        made = prepare_elsewhere(graph, others, "new shapes compile")
        if made is not None:
            made.forget_weights()
        return made

    if others:
        for part in prepared.partitions:
            if isinstance(part.compiled, SupportsOtherAnswers):
                part.compiled.answer_by(prepare_others)

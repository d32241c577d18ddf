"""Partitions of contexts that must answer runs in which nothing is selected.

A partition that is reloaded from a context has no nodes that another execution provider could run
in its place (`ort_lite.planning.empty_runs`), so that the answer must follow from the declared
shapes. Partitions for which it does not are not made: the nodes that read what was selected stay
with an execution provider that takes values without elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.planning.data_sizes import dims_of, find_reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctx_formats.onnx_model import Dim
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.planning.partitioner import Part


def find_unanswered(
    graph: Graph,
    eps: Sequence[ExecutionProvider],
    parts: Iterable[Part],
    selected: frozenset[str],
) -> dict[int, dict[int, str]]:
    """Nodes that must not be in a partition that is reloaded without its nodes.

    Args:
        graph: A whole graph, or a body.
        eps: Of the session, in order of preference.
        parts: Its partitions.
        selected: Values of the graph that have no elements in some runs.

    Returns:
        The owner of a partition to {node: reason}.
    """
    unanswered: dict[int, dict[int, str]] = {}
    for part in parts:
        elsewhere = any(ep.takes_empty for ep in eps[part.owner + 1 :])
        if eps[part.owner].takes_empty or not elsewhere:
            continue
        for name in _unanswered_inputs(graph, part, selected):
            reason = (
                f"'{name}' has no elements where nothing is selected, and what follows from that "
                "does not follow from the declared shapes alone, as a context would need"
            )
            for node in find_reached(graph, part.nodes, {name}, selected):
                unanswered.setdefault(part.owner, {}).setdefault(node, reason)
    return unanswered


def _unanswered_inputs(graph: Graph, part: Part, selected: frozenset[str]) -> list[str]:
    """Inputs of a partition whose lack of elements leaves an output unknown."""
    own = graph.extract(part.nodes, "partition")
    names = {name: _names(graph, name) for name in (info.name for info in own.inputs)}
    settled = {dim for name, dims in names.items() if name not in selected for dim in dims}
    unanswered = []
    for name in selected.intersection(names):
        free = names[name] - settled
        known = free and None not in (dims_of(graph, name) or (None,))
        around = set().union(*names.values())
        outputs = (dims_of(graph, info.name) for info in own.outputs)
        if not known or not all(_is_empty_with(dims, free, around) for dims in outputs):
            unanswered.append(name)
    return sorted(unanswered)


def _names(graph: Graph, name: str) -> set[str]:
    return {dim for dim in dims_of(graph, name) or () if isinstance(dim, str)}


def _is_empty_with(dims: tuple[Dim, ...] | None, free: set[str], names: set[str]) -> bool:
    """Whether a value of shape `dims` has no elements and a known shape if any of `free` is zero.

    Args:
        dims: None where they are not known.
        free: Names of dimensions that may be zero.
        names: Those of all dimensions whose size a run knows.
    """
    if dims is None or not free.issubset(dims):
        return False
    return all(dim >= 0 if isinstance(dim, int) else dim in names for dim in dims)

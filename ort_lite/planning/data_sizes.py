"""Values that have no elements in some runs, whatever the sizes of the model's inputs.

NonMaxSuppression finds no box, NonZero nothing that is not zero. An execution provider that takes
no values without elements is then replaced for the run (`ort_lite.planning.empty_runs`). Where its
partition is reloaded from a context there are no nodes to replace it with, and the answer must
follow from the declared shapes. Partitions for which it does not are not made: the nodes that read
such values stay with an execution provider that takes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctx_formats.onnx_model import Dim
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.planning.partitioner import Part

SELECTING = frozenset(("Compress", "NonMaxSuppression", "NonZero"))
"""Operators of ai.onnx that may select nothing from inputs that have elements."""

UPDATING = frozenset(("Scatter", "ScatterElements", "ScatterND"))
"""Operators of ai.onnx whose output has the shape of their first input, whatever they write."""


def find_unanswered(
    graph: Graph, eps: Sequence[ExecutionProvider], parts: Iterable[Part]
) -> dict[int, dict[int, str]]:
    """Nodes that must not be in a partition that is reloaded without its nodes.

    Args:
        graph: A whole graph; the inputs of a body count as values with elements.
        eps: Of the session, in order of preference.
        parts: Its partitions.

    Returns:
        The owner of a partition to {node: reason}.
    """
    unanswered: dict[int, dict[int, str]] = {}
    selected: frozenset[str] | None = None
    for part in parts:
        elsewhere = any(ep.takes_empty for ep in eps[part.owner + 1 :])
        if eps[part.owner].takes_empty or not elsewhere:
            continue
        if selected is None:
            selected = values_by_selection(graph)
        if not selected:
            break
        for name in _unanswered_inputs(graph, part, selected):
            reason = (
                f"'{name}' has no elements where nothing is selected, and what follows from that "
                "does not follow from the declared shapes alone, as a context would need"
            )
            for node in _reached_nodes(graph, part.nodes, {name}, selected):
                unanswered.setdefault(part.owner, {}).setdefault(node, reason)
    return unanswered


def find_behind_selections(graph: Graph, mine: set[int]) -> set[int]:
    """Those of an execution provider's nodes that get no elements where others select nothing."""
    selected = values_by_selection(graph)
    outside = (name for name in selected if graph.producer(name) not in mine)
    return _reached_nodes(graph, sorted(mine), outside, selected) if selected else set()


def values_by_selection(graph: Graph) -> frozenset[str]:
    """Values that have no elements in runs in which the data selects nothing.

    A shape of known sizes, or of names that other values have, does not depend on the selection.
    """
    if not any(_selects(graph, index) for index in range(len(graph.nodes))):
        return frozenset()
    selected: set[str] = set()
    sized = {dim for info in graph.inputs for dim in _dims(graph, info.name) or ()}
    for index, node in enumerate(graph.nodes):
        read = node.inputs[:1] if _is_one_of(graph, index, UPDATING) else graph.node_inputs(index)
        outputs = [name for name in node.outputs if name]
        if not selected.isdisjoint(read) or _selects(graph, index):
            selected.update(name for name in outputs if not _is_settled(graph, name, sized))
        else:
            sized.update(dim for name in outputs for dim in _dims(graph, name) or ())
    return frozenset(selected)


def _selects(graph: Graph, index: int) -> bool:
    if _is_one_of(graph, index, SELECTING):
        return True
    return any(
        _selects(body, i) for body in graph.bodies(index).values() for i in range(len(body.nodes))
    )


def _is_one_of(graph: Graph, index: int, operators: frozenset[str]) -> bool:
    node = graph.nodes[index]
    return node.op_type in operators and node.domain in ("", "ai.onnx")


def _dims(graph: Graph, name: str) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor; None where they are not known, and of other values."""
    value_type = graph.type_of(name)
    return value_type.shape if isinstance(value_type, TensorType) else None


def _is_settled(graph: Graph, name: str, sized: set[Dim]) -> bool:
    dims = _dims(graph, name)
    if dims is None:
        return False
    return all(dim > 0 if isinstance(dim, int) else dim and dim in sized for dim in dims)


def _unanswered_inputs(graph: Graph, part: Part, selected: frozenset[str]) -> list[str]:
    """Inputs of a partition whose lack of elements leaves an output unknown."""
    own = graph.extract(part.nodes, "partition")
    names = {name: _names(graph, name) for name in (info.name for info in own.inputs)}
    settled = {dim for name, dims in names.items() if name not in selected for dim in dims}
    unanswered = []
    for name in selected.intersection(names):
        free = names[name] - settled
        known = free and None not in (_dims(graph, name) or (None,))
        around = set().union(*names.values())
        outputs = (_dims(graph, info.name) for info in own.outputs)
        if not known or not all(_is_empty_with(dims, free, around) for dims in outputs):
            unanswered.append(name)
    return sorted(unanswered)


def _names(graph: Graph, name: str) -> set[str]:
    return {dim for dim in _dims(graph, name) or () if isinstance(dim, str)}


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


def _reached_nodes(
    graph: Graph, nodes: Iterable[int], names: Iterable[str], selected: frozenset[str]
) -> set[int]:
    """Those of `nodes`, ascending, that the lack of elements of `names` reaches."""
    reached, readers = set(names), set()
    for index in nodes:
        if not reached.isdisjoint(graph.node_inputs(index)):
            readers.add(index)
            reached.update(selected.intersection(graph.nodes[index].outputs))
    return readers

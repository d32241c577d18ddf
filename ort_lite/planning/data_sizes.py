"""Values that have no elements in some runs, whatever the sizes of the model's inputs.

NonMaxSuppression finds no box, NonZero nothing that is not zero, and what is padded needs no
padding. An execution provider that takes
no values without elements is then replaced for the run (`ort_lite.planning.empty_runs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from ort_lite.model.computed_shapes import may_contain_zero

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctx_formats.onnx_model import Dim
    from ort_lite.model.graph import Graph

SELECTING = frozenset(("Compress", "NonMaxSuppression", "NonZero"))
"""Operators of ai.onnx that may select nothing from inputs that have elements."""

EXPANDING = frozenset(("ConstantOfShape", "Expand"))
"""Operators of ai.onnx whose last input is the shape of their output."""

UPDATING = frozenset(("Scatter", "ScatterElements", "ScatterND"))
"""Operators of ai.onnx whose output has the shape of their first input, whatever they write."""


def find_behind_selections(graph: Graph, mine: set[int]) -> set[int]:
    """Those of an execution provider's nodes that get no elements where others select nothing."""
    selected = values_by_selection(graph)
    outside = (name for name in selected if graph.producer(name) not in mine)
    return find_reached(graph, sorted(mine), outside, selected) if selected else set()


def values_by_selection(graph: Graph) -> frozenset[str]:
    """Values that have no elements in runs in which the data selects nothing.

    A shape of known sizes, or of names that other values have, does not depend on the selection.
    """
    if not any(_selects(graph, index) for index in range(len(graph.nodes))):
        return frozenset()
    selected: set[str] = set()
    sized = {dim for info in graph.inputs for dim in dims_of(graph, info.name) or ()}
    for index, node in enumerate(graph.nodes):
        read = node.inputs[:1] if _is_one_of(graph, index, UPDATING) else graph.node_inputs(index)
        outputs = [name for name in node.outputs if name]
        if not selected.isdisjoint(read) or _selects(graph, index):
            selected.update(name for name in outputs if not _is_settled(graph, name, sized))
        else:
            sized.update(dim for name in outputs for dim in dims_of(graph, name) or ())
    return frozenset(selected)


def _selects(graph: Graph, index: int) -> bool:
    if _is_one_of(graph, index, SELECTING):
        return True
    if _is_one_of(graph, index, EXPANDING):
        return may_contain_zero(graph, graph.nodes[index].inputs[-1])
    return any(
        _selects(body, i) for body in graph.bodies(index).values() for i in range(len(body.nodes))
    )


def _is_one_of(graph: Graph, index: int, operators: frozenset[str]) -> bool:
    node = graph.nodes[index]
    return node.op_type in operators and node.domain in ("", "ai.onnx")


def dims_of(graph: Graph, name: str) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor; None where they are not known, and of other values."""
    value_type = graph.type_of(name)
    return value_type.shape if isinstance(value_type, TensorType) else None


def _is_settled(graph: Graph, name: str, sized: set[Dim]) -> bool:
    dims = dims_of(graph, name)
    if dims is None:
        return False
    return all(dim > 0 if isinstance(dim, int) else dim and dim in sized for dim in dims)


def find_reached(
    graph: Graph, nodes: Iterable[int], names: Iterable[str], selected: frozenset[str]
) -> set[int]:
    """Those of `nodes`, ascending, that the lack of elements of `names` reaches."""
    reached, readers = set(names), set()
    for index in nodes:
        if not reached.isdisjoint(graph.node_inputs(index)):
            readers.add(index)
            reached.update(selected.intersection(graph.nodes[index].outputs))
    return readers

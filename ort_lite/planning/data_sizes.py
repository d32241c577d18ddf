"""Values that have no elements in some runs, whatever the sizes of the model's inputs.

NonMaxSuppression finds no box, NonZero nothing that is not zero, what is padded needs no padding,
and a Loop begins with nothing and appends to it. An execution provider that takes no values without
elements is then replaced for the run (`ort_lite.planning.empty_runs`).
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

LOOPING = frozenset(("Loop", "Scan"))
"""Operators of ai.onnx whose body passes states from one iteration to the next."""


def find_behind_selections(graph: Graph, mine: set[int]) -> set[int]:
    """Those of an execution provider's nodes that get no elements where others select nothing."""
    selected = values_by_selection(graph)
    outside = (name for name in selected if graph.producer(name) not in mine)
    return find_reached(graph, sorted(mine), outside, selected) if selected else set()


def values_by_selection(graph: Graph, outside: frozenset[str] = frozenset()) -> frozenset[str]:
    """Values that have no elements in runs in which the data selects nothing.

    A shape of known sizes, or of names that other values have, does not depend on the selection.

    Args:
        graph: A whole graph, or a body.
        outside: Inputs of a body, and values from around it, that may have no elements.
    """
    if not outside and not any(_selects(graph, index) for index in range(len(graph.nodes))):
        return frozenset()
    selected = set(outside)
    inputs = [info.name for info in graph.inputs if info.name not in outside]
    sized = {dim for name in inputs for dim in dims_of(graph, name) or ()}
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
    if _is_one_of(graph, index, LOOPING) and any(
        _lacks_elements(graph, name) for name in graph.nodes[index].inputs
    ):
        return True
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


def _lacks_elements(graph: Graph, name: str) -> bool:
    constant = graph.constant(name)
    return 0 in (constant.dims if constant is not None else dims_of(graph, name) or ())


def find_empty_in_body(
    graph: Graph, index: int, body: Graph, selected: frozenset[str]
) -> frozenset[str]:
    """Inputs of a body, and values from around it, that have no elements in some iterations.

    Args:
        graph: With the node of the body.
        index: Of that node.
        body: One of its bodies.
        selected: Values of `graph` that have no elements in some runs.
    """
    node, inputs = graph.nodes[index], body.definition.inputs
    if node.op_type == "Loop":
        fed, carried = node.inputs, zip(body.outputs[1:], inputs[2:], strict=False)
    else:  # of a Scan of opset 8, the lengths of the sequences come first
        fed = node.inputs[len(node.inputs) - len(inputs) :] if inputs else ()
        scanned = node.attributes.get("num_scan_inputs")
        count = scanned.value if scanned is not None else len(inputs)
        states = len(inputs) - count if isinstance(count, int) else 0
        carried = zip(body.outputs[:states], inputs[:states], strict=False)
    passed = [(info.name, mine.name) for info, mine in carried]
    empty = set(selected.intersection(body.captured))
    empty.update(
        mine.name
        for name, mine in zip(fed, inputs, strict=False)
        if name and (name in selected or _lacks_elements(graph, name))
    )
    while True:
        empty = {name for name in empty if not _is_settled(body, name, set())}
        reached = values_by_selection(body, frozenset(empty))
        more = {
            mine
            for name, mine in passed
            if (name in reached or _lacks_elements(body, name))
            and not _is_settled(body, mine, set())
        }
        if more <= empty:
            return frozenset(empty)
        empty |= more


def may_be_empty_inside(graph: Graph, index: int) -> bool:
    """Whether a body of a node has a value without elements in some runs or iterations."""
    return _may_be_empty_inside(graph, index, values_by_selection(graph))


def _may_be_empty_inside(graph: Graph, index: int, selected: frozenset[str]) -> bool:
    for body in graph.bodies(index).values():
        empty = find_empty_in_body(graph, index, body, selected)
        if empty or values_by_selection(body):
            return True
        for i, node in enumerate(body.nodes):
            names = filter(None, (*node.inputs, *node.outputs))
            if any(body.constant(name) is None and _lacks_elements(body, name) for name in names):
                return True
            if body.bodies(i) and _may_be_empty_inside(body, i, frozenset()):
                return True
    return False


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

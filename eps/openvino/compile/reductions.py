"""Rewrites 3-D reductions, which OpenVINO's CPU plug-in fuses wrongly with later operators.

The plug-in fuses an element-wise operator with per-channel constants into the reduction before it.
For a reduction over the last or the first of three dimensions it uses the constants of other
channels, and reads beyond them (seen with 2026.4.1; two, four and five dimensions are correct).
Such a reduction is computed here in four dimensions, the last of size 1 and reduced, too. If the
last one were only removed again, OpenVINO would restore the three dimensions of static shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import openvino

REDUCTIONS = frozenset(
    (
        *("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
        "ReduceSum",
    )
)
"""Type names of OpenVINO's operators."""
RANK = 3
LONGEST_CHAIN = 16
"""Longest chain to follow: element-wise operators after a reduction, or constant operators."""


def keep_apart(model: openvino.Model) -> None:
    """Rewrite, in place, the reductions that could be fused with per-channel constants."""
    for node in model.get_ops():
        if node.get_type_name() in REDUCTIONS and _is_affected(node):
            _replace(node)


def _is_affected(node: openvino.Node) -> bool:
    rank = node.get_input_partial_shape(0).rank
    return bool(rank.is_static and rank.get_length() == RANK) and _meets_channels(node)


def _meets_channels(node: openvino.Node) -> bool:
    """Whether the node's result meets a constant of more than one element.

    Operators in between count if all their inputs are constants or come from the node, as those of
    Swish do, which reads a value and its Sigmoid.
    """
    reached = {node.get_name(): node}
    for _ in range(LONGEST_CHAIN):
        before = len(reached)
        for consumer in _list_consumers(reached.values()):
            if consumer.get_name() in reached or consumer.get_type_name() == "Result":
                continue
            others = [v for v in consumer.input_values() if v.get_node().get_name() not in reached]
            if not all(_is_constant(value.get_node(), LONGEST_CHAIN) for value in others):
                continue
            if any(_may_have_many_elements(value) for value in others):
                return True
            reached[consumer.get_name()] = consumer
        if len(reached) == before:
            return False
    return True


def _list_consumers(nodes: Iterable[openvino.Node]) -> list[openvino.Node]:
    outputs = [output for node in nodes for output in node.outputs()]
    return [target.get_node() for output in outputs for target in output.get_target_inputs()]


def _is_constant(node: openvino.Node, depth: int) -> bool:
    """Whether the node is a constant, or becomes one by constant folding."""
    if node.get_type_name() == "Constant":
        return True
    sources = [value.get_node() for value in node.input_values()]
    return bool(depth and sources) and all(_is_constant(one, depth - 1) for one in sources)


def _may_have_many_elements(value: openvino.Output) -> bool:
    shape = value.get_partial_shape()
    return shape.is_dynamic or any(size != 1 for size in shape.to_shape())


def _replace(node: openvino.Node) -> None:
    from eps.openvino.compile.operators import BROADCAST, make_constant, make_node  # noqa: PLC0415 - lazy: rare

    axes = node.input_value(1)  # a subgraph, of a global pool
    kind = axes.get_element_type()
    wide = make_node("Unsqueeze", [node.input_value(0), make_constant([RANK], [1])]).output(0)
    positive = make_node("FloorMod", [axes, make_constant([RANK], [], kind)], BROADCAST).output(0)
    listed = make_node("Reshape", [positive, make_constant([-1], [1])], {"special_zero": False})
    added = make_constant([RANK], [1], kind)
    both = make_node("Concat", [listed.output(0), added], {"axis": 0}).output(0)
    keeps = node.get_attributes()["keep_dims"]
    reduced = make_node(node.get_type_name(), [wide, both], {"keep_dims": keeps})
    if keeps:
        reduced = make_node("Squeeze", [reduced.output(0), make_constant([-1], [1])])
    put_in_place(node, reduced)


def put_in_place(node: openvino.Node, other: openvino.Node) -> None:
    """Give `other` the name, the users and the names of the output of `node`."""
    other.set_friendly_name(node.get_friendly_name())
    names = node.output(0).get_names()
    for target in node.output(0).get_target_inputs():
        target.replace_source_output(other.output(0))
    node.output(0).set_names(set())
    other.output(0).set_names(names)

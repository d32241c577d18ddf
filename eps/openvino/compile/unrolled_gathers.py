"""Gathers of one row each, along one axis of one tensor, written as a Split.

A loop over time that was unrolled, as PyTorch exports it, gathers every row of the same tensors.
OpenVINO's CPU plug-in runs each Gather as a node of its own: 192 of them take 3.1 ms in a Mamba of
two layers and 48 steps, four Splits 0.3 ms (2026.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of, shape_of
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "Gather"
LEAST_GATHERS = 8
"""Of one tensor; fewer are not slow."""
LEAST_SHARE = 0.5
"""Of all rows, because a Split copies them all."""
FLOATS = (DataType.FLOAT, DataType.FLOAT16)
AXES_ARE_INPUTS = 13
"""Opset from which Squeeze reads its axes, and Split its lengths, from an input."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a tensor.

    Attributes:
        data: Name of the tensor.
        axis: Along which they are counted, not negative.
        count: How many there are; None if a run decides it.
    """

    data: str
    axis: int
    count: int | None


def split_rows(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with one Split for Gathers of a tensor's rows, where they are many.

    Args:
        definition: To be rewritten.
        graph: Has the shapes of its values, and its constants.
    """
    has_axes = graph.opset_imports.get("", 1) >= AXES_ARE_INPUTS
    places = _find_places(definition, graph, has_axes=has_axes)
    if not places:
        return definition
    counts: dict[_Rows, int] = {}
    for rows, index in places.values():
        counts[rows] = max(counts.get(rows, 0), _count_rows(rows, (index,)))
    writer = NodeWriter(definition, "rows")
    parts: dict[_Rows, tuple[str, ...]] = {}
    for node in definition.nodes:
        place = places.get(node.outputs[0]) if node.outputs else None
        if place is None:
            writer.nodes.append(node)
            continue
        rows, index = place
        if rows not in parts:
            parts[rows] = _write_split(rows, counts[rows], writer, has_axes=has_axes)
        _write_squeeze(parts[rows][index], rows.axis, node, writer, has_axes=has_axes)
    return writer.finish(definition)


def _find_places(
    definition: GraphDef, graph: Graph, *, has_axes: bool
) -> dict[str, tuple[_Rows, int]]:
    """By the output of each Gather that is replaced: which row it is."""
    gathers: dict[_Rows, dict[str, int]] = {}
    for node in definition.nodes:
        place = _find_place(node, graph)
        if place is not None and (has_axes or place[0].count is not None):
            rows, index = place
            gathers.setdefault(rows, {})[node.outputs[0]] = index
    return {
        name: (rows, index)
        for rows, indices in gathers.items()
        if len(indices) >= LEAST_GATHERS
        and len(set(indices.values())) >= LEAST_SHARE * _count_rows(rows, indices.values())
        for name, index in indices.items()
    }


def _count_rows(rows: _Rows, indices: Iterable[int]) -> int:
    """All rows, or those up to the last that is read."""
    return rows.count if rows.count is not None else max(indices) + 1


def _find_place(node: Node, graph: Graph) -> tuple[_Rows, int] | None:
    """The rows of which a node gathers one, and which it is; None for another node."""
    if node.op_type != OPERATOR or node.domain or len(node.inputs) != len(("data", "indices")):
        return None
    data, indices = node.inputs[0], graph.constant(node.inputs[1])
    shape = shape_of(graph, data)
    if indices is None or indices.dims or shape is None or graph.constant(data) is not None:
        return None
    if element_type_of(graph, data) not in FLOATS:
        return None
    attribute = node.attributes.get("axis")
    axis = attribute.value if attribute is not None and isinstance(attribute.value, int) else 0
    if not -len(shape) <= axis < len(shape):
        return None
    count, index = shape[axis], int(to_numpy(indices))
    if not isinstance(count, int):
        return (_Rows(data, axis % len(shape), None), index) if index >= 0 else None
    if not -count <= index < count:
        return None
    return _Rows(data, axis % len(shape), count), index % count


def _write_split(rows: _Rows, count: int, writer: NodeWriter, *, has_axes: bool) -> tuple[str, ...]:
    """Names of the first `count` rows, each with a dimension of 1."""
    data, lengths = rows.data, (1,) * count
    if rows.count is None:  # with too few of them, Split fails as Gather does
        bounds = [writer.integers(value) for value in (0, count, rows.axis)]
        data = writer.add("Slice", data, *bounds)
    if has_axes:
        inputs = (data, writer.integers(*lengths))
        return writer.add_many("Split", *inputs, count=count, axis=rows.axis)
    return writer.add_many("Split", data, count=count, axis=rows.axis, split=lengths)


def _write_squeeze(part: str, axis: int, node: Node, writer: NodeWriter, *, has_axes: bool) -> None:
    """The output of a Gather, from the row with a dimension of 1."""
    output = node.outputs[0]
    if has_axes:
        writer.add("Squeeze", part, writer.integers(axis), output=output)
    else:
        writer.add("Squeeze", part, output=output, axes=(axis,))

"""Checks, inside a partition, indices of GatherND that OpenVINO's CPU plug-in would not check.

An index out of range reads beyond the tensor there. GatherElements is checked: here one gathers
from a single zero with a count of the axes that have an index out of range. A count of 0 gives the
zero, which is added to the indices; any other ends the run with an error, and the session goes on
with the CPU EP, whose error names the index. `x[mask]` of PyTorch is such a GatherND, at the places
where the mask holds.

The plug-in computes extremes of integers in float32. Up to 2**21 elements of an axis are exact
there; of longer ones the last indices count as out of range, too. Where OpenVINO knows the shape
and the indices, it computes all of this when it compiles. Shapes that a model only declares are not
relied on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.indices import GATHER_ND, MOST_CHECKED, find_picked_axes
from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

INPUT_AXES = 18
"""Opset of ai.onnx from which on ReduceMax has its axes as an input."""
LIMITS = (-(1 << 29), (1 << 29) - 1)
"""Of indices, so that no result leaves 32 bits, nor float32's integers below 2**31."""


def check_indices(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with such checks; `graph` is the same with its types."""
    writer = NodeWriter(definition, "index")
    for node in definition.nodes:
        if node.op_type == GATHER_ND and not node.domain:
            checked = _check(node, graph, writer)
            writer.nodes.append(replace(node, inputs=(node.inputs[0], checked)))
        else:
            writer.nodes.append(node)
    return writer.finish(definition) if len(writer.nodes) > len(definition.nodes) else definition


def _check(node: Node, graph: Graph, writer: NodeWriter) -> str:
    """Add the nodes; the name of the checked indices."""
    data, indices = node.inputs
    axes, shape = find_picked_axes(node, graph), shape_of(graph, indices)
    assert axes is not None, "the support code declines what cannot be checked"
    assert shape is not None, "the support code declines what cannot be checked"
    sizes = writer.add("Gather", writer.add("Shape", data), writer.integers(*axes))
    bounds = writer.add("Mul", sizes, writer.integers(2))
    room = writer.add("Div", sizes, writer.integers(MOST_CHECKED))
    # |2 * index + 1| is 2 * size - 1 at the first and the last index of an axis.
    limited = writer.add(
        "Clip", indices, *(writer.integers(bound, scalar=True) for bound in LIMITS)
    )
    middles = writer.add("Add", writer.add("Mul", limited, writer.integers(2)), writer.integers(1))
    largest = _write_largest(writer.add("Abs", middles), len(shape) - 1, graph, writer)
    largest = writer.add("Max", largest, writer.integers(0))  # without indices it is the smallest
    left = writer.add("Sub", writer.add("Sub", bounds, room), largest)
    wrong = writer.add("Less", left, writer.integers(0))
    count = writer.add("ReduceSum", writer.add("Cast", wrong, to=DataType.INT64))
    zero = writer.integers(0)
    return writer.add("Add", indices, writer.add("GatherElements", zero, count))


def _write_largest(values: str, axes: int, graph: Graph, writer: NodeWriter) -> str:
    """The largest along all axes but the last; the name of it."""
    if not axes:
        return values
    if graph.opset_imports.get("", 1) < INPUT_AXES:
        return writer.add("ReduceMax", values, axes=tuple(range(axes)), keepdims=0)
    return writer.add("ReduceMax", values, writer.integers(*range(axes)), keepdims=0)

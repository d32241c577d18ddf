"""Reductions of transposed values, which keep axes of size 1 in their places for OpenVINO.

OpenVINO moves a Transpose behind a reduction, and drops it where it then moves axes of size 1
alone (2026.4.1): the sum over both directions of an LSTM with a batch of 1 is [1, length, values]
instead of [length, 1, values]. A reduction that keeps its axes, and a Squeeze that removes them,
stay right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import shape_of
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

PREFIX = "Reduce"
PASSED = frozenset(("Cast", "Dropout", "Identity"))
"""Operators through which OpenVINO moves a Transpose, or which it drops."""
LAST = frozenset(
    (
        *("Abs", "Add", "AveragePool", "BatchNormalization", "Clip", "Concat", "Conv", "Div"),
        *("Erf", "Exp", "Gather", "Gelu", "Gemm", "LayerNormalization", "LeakyRelu", "Log"),
        *("MatMul", "MaxPool", "Mul", "Neg", "Pow", "Relu", "Reshape", "Sigmoid", "Slice"),
        *("Softmax", "Sqrt", "Sub", "Tanh", "Where"),
    )
)
"""Operators that OpenVINO's conversion does not end with a Transpose: all that often come before a
reduction. For others, such as LSTM, it may."""
FIRST_WITH_AXES_AS_INPUT = 13
"""Opset of ai.onnx from which on Squeeze has them there; it had an attribute before."""


def keep_unit_axes(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with such reductions in two nodes each.

    Args:
        definition: To be rewritten.
        graph: Has the shapes of its values, as far as they are known, and its constants.
    """
    makers = {name: node for node in definition.nodes for name in node.outputs}
    writer = NodeWriter(definition, "kept")
    for node in definition.nodes:
        if not _is_affected(node, makers, graph):
            writer.nodes.append(node)
            continue
        others = {name: item for name, item in node.attributes.items() if name != "keepdims"}
        reduced = writer.add(node.op_type, *node.inputs, output="", keepdims=1, **others)
        axes, output = node.attributes.get("axes"), node.outputs[0]
        if axes is None:
            writer.add("Squeeze", reduced, node.inputs[1], output=output)
        elif graph.opset_imports.get("", 1) < FIRST_WITH_AXES_AS_INPUT:
            writer.add("Squeeze", reduced, axes=axes, output=output)
        else:
            writer.add("Squeeze", reduced, writer.integers(*_integers(axes.value)), output=output)
    return writer.finish(definition) if len(writer.nodes) > len(definition.nodes) else definition


def _is_affected(node: Node, makers: Mapping[str, Node], graph: Graph) -> bool:
    keeps = node.attributes.get("keepdims")
    if not node.op_type.startswith(PREFIX) or node.domain or keeps is None or keeps.value != 0:
        return False
    if not _has_unit_axis(node, graph):
        return False
    maker = makers.get(node.inputs[0])
    while maker is not None and maker.op_type in PASSED:
        maker = makers.get(maker.inputs[0])
    return maker is not None and maker.op_type not in LAST


def _has_unit_axis(node: Node, graph: Graph) -> bool:
    """Whether an axis of size 1 may be kept, of several: some axes, or an unknown shape."""
    shape, axes = shape_of(graph, node.inputs[0]), _axes_of(node, graph)
    if shape is None:
        return axes != ()
    if axes is None:
        return 1 in shape
    gone = {axis % len(shape) for axis in axes} if shape else set()
    kept = [dim for place, dim in enumerate(shape) if place not in gone]
    return bool(gone) and len(kept) > 1 and 1 in kept


def _axes_of(node: Node, graph: Graph) -> tuple[int, ...] | None:
    """Axes to be reduced; () for all, or where none may mean all; None if a run decides."""
    attribute = node.attributes.get("axes")
    if attribute is not None:
        return _integers(attribute.value)
    if len(node.inputs) < 2 or not node.inputs[1]:
        return ()
    axes = graph.constant(node.inputs[1])
    return tuple(int(axis) for axis in to_numpy(axes).reshape(-1)) if axes is not None else None


def _integers(value: object) -> tuple[int, ...]:
    return tuple(int(item) for item in value) if isinstance(value, tuple) else ()

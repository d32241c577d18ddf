"""Powers of short rows, computed as one row, for OpenVINO's CPU plug-in.

It computes a power together with what reads it, row by row, whole vectors at a time. Behind the
end of a short row it takes zeros to the power as well, each in a call of its own: a negative power
of 256 rows of one, which a product spreads over real and imaginary parts, takes 770 us, and 14 as
one row (2026.4.1). The bits are the same.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of, shape_of
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "Pow"
OLDEST_OPSET = 7
"""Of ai.onnx from which on Pow broadcasts without attributes; Reshape has its shape as an input."""
VECTOR = 16
"""Elements of the widest vector."""
LEAST_ROWS = 16
"""Fewer are not slow."""
SIMPLE = frozenset((0.5, 1.0, 2.0, 3.0))
"""Exponents that the plug-in computes without a call for each element."""


def flatten_powers(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with such powers between two Reshapes.

    Args:
        definition: To be rewritten.
        graph: Has the shapes of its values, and its constants.
    """
    if graph.opset_imports.get("", 1) < OLDEST_OPSET:
        return definition
    writer = NodeWriter(definition, "power")
    for node in definition.nodes:
        shape = _short_rows(node, graph)
        if shape is None:
            writer.nodes.append(node)
            continue
        flat = writer.add("Reshape", node.inputs[0], writer.integers(-1))
        power = writer.add(OPERATOR, flat, node.inputs[1])
        writer.add("Reshape", power, writer.integers(*shape), output=node.outputs[0])
    return writer.finish(definition) if writer.nodes != list(definition.nodes) else definition


def _short_rows(node: Node, graph: Graph) -> tuple[int, ...] | None:
    """Shape of a power of short rows; None for any other node."""
    if node.op_type != OPERATOR or node.domain:
        return None
    exponent = graph.constant(node.inputs[1])
    if exponent is None or exponent.data_type != DataType.FLOAT or prod(exponent.dims) != 1:
        return None
    if float(to_numpy(exponent).item()) in SIMPLE:
        return None
    shape = shape_of(graph, node.inputs[0])
    if element_type_of(graph, node.inputs[0]) != DataType.FLOAT or not shape:
        return None
    sizes = tuple(dim for dim in shape if isinstance(dim, int))
    if len(sizes) < len(shape) or not all(sizes) or len(exponent.dims) > len(sizes):
        return None
    return sizes if sizes[-1] < VECTOR and prod(sizes[:-1]) >= LEAST_ROWS else None

"""QuantizeLinear that OpenVINO computes wrong and that is written out, and when it cannot be.

compile/written_steps.py writes it. Seen with the CPU plug-in of OpenVINO 2026.4.1:

- Steps of 16 bits, with the DequantizeLinear behind them, are taken out of the model (its pass
  FQStripping): values are neither rounded nor clipped.
- A scale for each index of an axis other than the second is applied to others, in free shapes, and
  in known ones behind an AveragePool. So is one of the second axis where that has no known size.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.support.node_facts import element_type_of, shape_of
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Node
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

OPERATOR = "QuantizeLinear"
RANGES: Mapping[int, tuple[float, float]] = {
    DataType.INT8: (-128.0, 127.0),
    DataType.UINT8: (0.0, 255.0),
    DataType.INT16: (-32768.0, 32767.0),
    DataType.UINT16: (0.0, 65535.0),
}
WIDE = (DataType.INT16, DataType.UINT16)
CHANNEL = 1
"""The axis whose scales OpenVINO applies as they are meant, if its size is known."""
SMALLEST, LARGEST = 2.0**-126, 5e33
"""Scales that OpenVINO can compute with."""


def is_written_out(node: Node, graph: Graph) -> bool:
    """Whether a QuantizeLinear is one of these; `graph` has its constants and types."""
    if node.op_type != OPERATOR or node.domain:
        return False
    kind = find_step_type(node, graph)
    if kind in WIDE:
        return True
    if kind not in RANGES:
        return False
    if _bounds_of_scale(node, graph)[1] > LARGEST:
        return True
    if not _has_axis(node, graph):
        return False
    shape = shape_of(graph, node.inputs[0])
    if not shape:
        return True
    axis = find_axis(node) % len(shape)
    return axis != CHANNEL or not isinstance(shape[axis], int)


def _bounds_of_scale(node: Node, graph: Graph) -> tuple[float, float]:
    """The smallest and the largest of the scales; of what is computed 1."""
    scale = graph.constant(node.inputs[1])
    sizes = to_numpy(scale).astype(np.float64) if scale is not None else np.ones(1)
    return float(sizes.min(initial=1)), float(sizes.max(initial=1))


def _has_axis(node: Node, graph: Graph) -> bool:
    scale = graph.constant(node.inputs[1])
    return scale is not None and prod(scale.dims) != 1


def find_axis(node: Node) -> int:
    """The attribute, which may be negative."""
    axis = node.attributes.get("axis")
    return axis.value if axis is not None and isinstance(axis.value, int) else CHANNEL


def find_step_type(node: Node, graph: Graph) -> int | None:
    """Element type of the results of a QuantizeLinear; None if it is unknown."""
    if len(node.inputs) > 2 and node.inputs[2]:
        return element_type_of(graph, node.inputs[2])
    dtype = node.attributes.get("output_dtype")
    if dtype is not None and isinstance(dtype.value, int) and dtype.value:
        return dtype.value
    return DataType.UINT8


def written_steps_problem(facts: NodeFacts) -> str:
    """Why a QuantizeLinear with a constant scale cannot be written out; "" if it need not be."""
    node, graph = facts.node, facts.graph
    if is_written_out(node, graph) and _has_axis(node, graph) and facts.shape(0) is None:
        return "its scales along an axis of a value of unknown rank are applied to others"
    if node.op_type == OPERATOR and _bounds_of_scale(node, graph)[0] < SMALLEST:
        return "its zero point is lost with a scale below the smallest normal number"
    return ""

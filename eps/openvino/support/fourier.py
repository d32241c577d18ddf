"""Which DFT OpenVINO gets (ONNX DFT-17 and DFT-20), as of OpenVINO 2026.4.1.

Its conversion takes axis 1 for any that DFT-20 has as an input, counts a negative one of DFT-17
without the last dimension, and of one-sided transforms the shape keeps the dimension of the real
parts. eps/openvino/compile/fourier.py mends all three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.support.node_facts import NodeFacts, element_type_of, shape_of
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Dim, Node
    from ort_lite.ep import Graph

OLDEST_WITH_AXIS_INPUT = 20
CONVERTED_AXIS = 1
"""The axis that the conversion of DFT-20 takes, whatever the input says."""
LOST_DIGITS = "two-sided DFT of a length that is not known to be a power of two loses digits"
"""Up to 1e-4 of the largest bin for 400 samples, and more for more."""
_LENGTH, _AXIS = 1, 2


def find_axis(node: Node, graph: Graph) -> int | None:
    """The axis of a DFT, from 0; None if it or the rank is not known."""
    shape = shape_of(graph, node.inputs[0])
    if shape is None:
        return None
    if graph.opset_imports.get("", 1) < OLDEST_WITH_AXIS_INPUT:
        attribute = node.attributes.get("axis")
        axis = attribute.value if attribute else 1
    elif len(node.inputs) <= _AXIS or not node.inputs[_AXIS]:
        axis = -2
    else:
        axis = _read_integer(node.inputs[_AXIS], graph)
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    return axis % len(shape)


def dft_problem(facts: NodeFacts) -> str:
    """Why OpenVINO does not get a DFT; "" if it does."""
    node, graph = facts.node, facts.graph
    shape, axis = facts.shape(0), find_axis(node, graph)
    if shape is None or axis is None:
        return "DFT along an axis that is not known"
    if len(shape) < 2 or axis == len(shape) - 1 or shape[-1] not in (1, 2):
        return "DFT of parts that are not known to be real or complex"
    if element_type_of(graph, node.inputs[0]) != DataType.FLOAT:
        return "DFT of other elements than float32"
    if len(shape) == 2 and facts.opset >= OLDEST_WITH_AXIS_INPUT:
        return "DFT of one signal, whose axis OpenVINO converts wrong"
    if facts.is_runtime(_LENGTH):
        return "dft_length is not a constant"
    size = _read_integer(node.inputs[_LENGTH], graph) if facts.has_input(_LENGTH) else shape[axis]
    if not facts.number("onesided", 0):
        return "" if _is_power_of_two(size) else LOST_DIGITS
    if facts.number("inverse", 0) or shape[-1] != 1:
        return "one-sided DFT that is inverse or of complex numbers"
    if facts.has_input(_LENGTH) and not _fits(size, shape[axis]):
        return "one-sided DFT that may be longer than the signal"
    return ""


def _is_power_of_two(size: Dim | None) -> bool:
    return isinstance(size, int) and size > 0 and not size & (size - 1)


def _fits(length: Dim | None, size: Dim) -> bool:
    """OpenVINO's one-sided transform takes a part of a signal, but appends no zeros to it."""
    return isinstance(length, int) and isinstance(size, int) and length <= size


def _read_integer(name: str, graph: Graph) -> int | None:
    """A constant of one element; None for others."""
    constant = graph.constant(name)
    if constant is None:
        return None
    values = to_numpy(constant).ravel()
    return int(values[0]) if values.size == 1 else None

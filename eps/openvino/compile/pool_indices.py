"""Writes MaxPool with Indices (MaxPool-12) as what OpenVINO's CPU plug-in has fast kernels for.

Its own kernel is a plain loop over the elements of all windows: 11 ms for 2 x 2 windows of
[1, 16, 64, 128], where the maximum alone takes 0.1 ms (2026.4.1). Written out, the maximum is that
of MaxPool without Indices, and a window's index is that of the first of its elements that equals
it: slices of the input with the windows' strides have one element of each window.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import read_numbers, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "MaxPool"
MOST_TAPS = 9
"""Elements of a window, each of which is a slice, a comparison and a choice."""
OLDEST_WITH_EQUAL = 11
"""Opset of Equal for floats."""
_ALLOWED = {"pads": {0}, "dilations": {1}, "ceil_mode": {0}, "storage_order": {0}}
"""Numbers of attributes that may be given."""


class _Windows(NamedTuple):
    """Windows of a pool whose input has a known shape: none has padding, all of them fit."""

    shape: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Windows along each axis."""
        sizes = zip(self.shape[2:], self.kernel, self.strides, strict=True)
        return tuple((size - taps) // stride + 1 for size, taps, stride in sizes)

    @property
    def steps(self) -> tuple[int, ...]:
        """From an element to the next one along each axis."""
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(2, len(self.shape)))


def write_out_indices(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with such pools written out; `graph` is the same with its types."""
    if graph.opset_imports.get("", 1) < OLDEST_WITH_EQUAL:
        return definition
    writer = NodeWriter(definition, "pool")
    for node in definition.nodes:
        windows = _read_windows(node, graph)
        if windows is None:
            writer.nodes.append(node)
        else:
            _write(node, windows, writer)
    return writer.finish(definition)


def _read_windows(node: Node, graph: Graph) -> _Windows | None:
    """The windows of a MaxPool with Indices that can be written out; None for any other node."""
    if node.op_type != OPERATOR or node.domain or len(node.outputs) < 2 or not node.outputs[1]:
        return None
    shape = shape_of(graph, node.inputs[0])
    kernel = read_numbers(node, "kernel_shape")
    if shape is None or len(shape) != len(kernel) + 2 or prod(kernel) > MOST_TAPS:
        return None
    sizes = [size for size in shape if isinstance(size, int) and size > 0]
    auto_pad = node.attributes.get("auto_pad")
    differs = any(set(read_numbers(node, name)) - allowed for name, allowed in _ALLOWED.items())
    if differs or (auto_pad is not None and auto_pad.value not in (b"NOTSET", b"VALID")):
        return None
    if len(sizes) < len(shape) or any(n < k for n, k in zip(sizes[2:], kernel, strict=True)):
        return None
    return _Windows(tuple(sizes), kernel, read_numbers(node, "strides") or (1,) * len(kernel))


def _write(node: Node, windows: _Windows, writer: NodeWriter) -> None:
    """The maximum, and the index of each window's first element that equals it."""
    values, indices = node.outputs[:2]
    writer.nodes.append(replace(node, outputs=(values,)))
    taps = list(product(*map(range, windows.kernel)))
    place = writer.integers(_offset(taps[-1], windows))
    for tap in reversed(taps[:-1]):
        is_largest = writer.add("Equal", _slice(node.inputs[0], tap, windows, writer), values)
        place = writer.add("Where", is_largest, writer.integers(_offset(tap, windows)), place)
    place = writer.add("Add", place, _begin_of_windows(windows, writer))
    writer.add("Add", place, _begin_of_planes(windows, writer), output=indices)


def _offset(tap: Sequence[int], windows: _Windows) -> int:
    """From a window's first element to another."""
    return sum(at * step for at, step in zip(tap, windows.steps, strict=True))


def _slice(x: str, tap: Sequence[int], windows: _Windows, writer: NodeWriter) -> str:
    """The element of each window at a place of it."""
    spans = zip(tap, windows.counts, windows.strides, strict=True)
    ends = [at + (count - 1) * stride + 1 for at, count, stride in spans]
    axes = range(2, len(windows.shape))
    bounds = (tap, ends, axes, windows.strides)
    return writer.add("Slice", x, *(writer.integers(*numbers) for numbers in bounds))


def _begin_of_windows(windows: _Windows, writer: NodeWriter) -> str:
    """Where each window begins in a plane: [1, 1, windows along each axis]."""
    begin = np.zeros(windows.counts, "<i8")
    for axis, (count, stride) in enumerate(zip(windows.counts, windows.strides, strict=True)):
        places = np.arange(count) * stride * windows.steps[axis]
        begin += places.reshape([-1 if axis == a else 1 for a in range(begin.ndim)])
    return writer.constant(DataType.INT64, (1, 1, *windows.counts), begin.tobytes())


def _begin_of_planes(windows: _Windows, writer: NodeWriter) -> str:
    """Where each plane begins: [N, C, 1 for each axis]."""
    batch, channels, *rest = windows.shape
    begin = np.arange(batch * channels, dtype="<i8") * prod(rest)
    return writer.constant(DataType.INT64, (batch, channels, *(1 for _ in rest)), begin.tobytes())

"""Slices of free dimensions whose lengths OpenVINO bounds too low (seen with 2026.4.1).

Where a start counts from the end of a dimension and an end from its beginning, shape inference
takes the length at one size for the bound at all sizes. A bound of 0 makes the value empty, and
runs with other lengths fail: "Can not clone with new dims".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.openvino.support.node_facts import NodeFacts

_UNLIMITED = (1 << 31) - 1
"""Ends from here on mean the end of a dimension, whatever its size."""


def check_slice(node: NodeFacts) -> str:
    """Decline constant bounds at different ends of a free dimension."""
    starts, ends = _read(node, 1, "starts"), _read(node, 2, "ends")
    shape = node.shape(0)
    if not starts or not ends or shape is None:
        return ""
    axes = _read(node, 3, "axes") or range(len(starts))
    steps = _read(node, 4, "steps") or (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=False):
        if -len(shape) <= axis < len(shape) and not isinstance(shape[axis], int):
            forward = step > 0 and start < 0 <= end < _UNLIMITED
            backward = step < 0 and -_UNLIMITED < end < 0
            if forward or backward:
                return f"the length of a free dimension from {start} to {end} is inferred wrong"
    return ""


def _read(node: NodeFacts, position: int, name: str) -> Sequence[int]:
    """A constant input or, before opset 10, attribute; empty if it is absent or computed."""
    constant = node.constant(position)
    if constant is None:
        return node.numbers(name)
    return [int(value) for value in to_numpy(constant).ravel()]

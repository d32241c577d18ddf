"""Pools with `ceil_mode`: which ones OpenVINO computes as ONNX Pool-22 defines them.

There, a window must start inside the input or its left padding. Where every window does so
whatever the size of the input, the pool is another one without `ceil_mode` and with more padding
behind the input, which OpenVINO computes for free dimensions as well, and where an input is
smaller than a window (compile/ceil_pools.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.openvino.support.node_facts import read_numbers, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_formats.onnx_model import Dim, Node
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

REWRITTEN = frozenset(("AveragePool", "MaxPool"))
"""Pools whose padding counts as no element, so that more of it changes no window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """Windows along one axis.

    Attributes:
        span: Elements from the first to the last that a window reads.
        stride: From the start of a window to the start of the next.
        before: Padding in front of the input.
        after: Padding behind it.
    """

    span: int
    stride: int
    before: int
    after: int

    def count_steps(self, size: int) -> int:
        """Windows after the first, for an input of `size`, with the quotient rounded up."""
        return -(-(size + self.before + self.after - self.span) // self.stride)


def check_pool(node: NodeFacts) -> str:
    """Decline windows that start in the padding, and means that count elements behind it."""
    if not _read_number(node.node, "ceil_mode"):
        return ""
    shape, windows = node.shape(0), list(_read_windows(node.node))
    spatial = shape[2:] if shape is not None else ()
    if len(spatial) != len(windows):
        return "ceil_mode with an unknown input shape: the last window may differ"
    if find_floor_padding(node.graph, node.node) is not None:
        return ""
    counts_padding = _counts_padding(node.node)
    for size, window in zip(spatial, windows, strict=True):
        if not isinstance(size, int):
            return "ceil_mode with a dynamic dimension: the last window may differ"
        start = window.count_steps(size) * window.stride
        if start >= size + window.before:
            return "ceil_mode keeps a last window that starts in the padding"
        if counts_padding and start + window.span > size + window.before + window.after:
            return "ceil_mode with count_include_pad counts elements behind the padding"
    return ""


def find_floor_padding(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """`pads` with which a pool of free dimensions is the same without `ceil_mode`.

    The start of the last window is at most `size + before + after - span + stride - 1`. That is
    inside the input or in front of it if `after + stride <= span`, whatever the size. With
    `stride - 1` more padding, rounding down counts as many windows as rounding up does without.

    Args:
        graph: Has the shape of the node's input.
        node: Any.

    Returns:
        None for a node that is no such pool, and for one whose shape is known or not of its rank.
    """
    if node.op_type not in REWRITTEN or node.domain or not _read_number(node, "ceil_mode"):
        return None
    auto_pad = node.attributes.get("auto_pad")
    if len(node.outputs) > 1 or (auto_pad is not None and auto_pad.value != b"NOTSET"):
        return None
    shape, windows = shape_of(graph, node.inputs[0]), list(_read_windows(node))
    spatial: tuple[Dim, ...] = shape[2:] if shape is not None else ()
    if len(spatial) != len(windows) or all(isinstance(size, int) for size in spatial):
        return None
    if _counts_padding(node) or any(one.after + one.stride > one.span for one in windows):
        return None
    after = (window.after + window.stride - 1 for window in windows)
    return (*(window.before for window in windows), *after)


def _counts_padding(node: Node) -> bool:
    """Whether padding counts in a mean; elements behind the padding do not."""
    return bool(_read_number(node, "count_include_pad")) and any(read_numbers(node, "pads"))


def _read_windows(node: Node) -> Iterator[_Window]:
    """By spatial axis; none where attributes do not fit each other."""
    kernel = read_numbers(node, "kernel_shape")
    rank = len(kernel)
    strides = read_numbers(node, "strides") or (1,) * rank
    dilations = read_numbers(node, "dilations") or (1,) * rank
    pads = read_numbers(node, "pads") or (0,) * (2 * rank)
    if (len(strides), len(dilations), len(pads)) != (rank, rank, 2 * rank):
        return
    for axis, taps in enumerate(kernel):
        span = dilations[axis] * (taps - 1) + 1
        before, after = pads[axis], pads[axis + rank]
        yield _Window(span=span, stride=strides[axis], before=before, after=after)


def _read_number(node: Node, name: str) -> int:
    attribute = node.attributes.get(name)
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else 0

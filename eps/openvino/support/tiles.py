"""Tile with repeats that are computed (seen with 2026.4.1 on CPU).

Where three or more dimensions are repeated by computed numbers, OpenVINO sometimes writes other
elements: in 4 of 100 random tensors of four and five dimensions. With one dimension it never did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from ort_lite.ep import may_contain_zero, to_numpy

if TYPE_CHECKING:
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

MOST_DIMENSIONS = 64
"""Of a tensor; a vector of repeats is not longer, whatever a hostile model says."""


def check_tile(node: NodeFacts) -> str:
    """Accept computed repeats of one dimension, and constant ones but for one form.

    [N, 1, H, W] with free N, repeated [1, 2, 2, 1], is wrong with constants, too. Repeated along
    one dimension, 240 random forms of free tensors with one channel were right in 1,200 runs.
    """
    if node.is_runtime(1):
        return _check_computed(node.graph, node.node.inputs[1])
    shape, repeats = node.shape(0), node.constant(1)
    if shape is None or repeats is None or all(isinstance(size, int) for size in shape):
        return ""
    times = to_numpy(repeats)
    wrong = len(shape) > 1 and shape[1] == 1 and times[1] > 1 and (times != 1).sum() > 1
    return "a single channel is repeated wrongly where other dimensions are free" if wrong else ""


def _check_computed(graph: Graph, name: str) -> str:
    known = _find_elements(graph, name)
    if known is None or sum(number != 1 for number in known) > 1:
        return f"repeats '{name}' are computed, and may be of more than one dimension"
    if may_contain_zero(graph, name):
        return f"'{name}' may contain a zero, and values without elements are repeated wrong"
    return ""


def _find_elements(graph: Graph, name: str) -> list[int | None] | None:
    """The elements of a vector, None for those that are computed; None without their number."""
    index = graph.producer(name)
    node = graph.nodes[index] if index is not None else None
    if node is None or node.domain or node.op_type != "Concat":
        return _list_elements(graph, name)
    parts = [_list_elements(graph, each) for each in node.inputs]
    if any(part is None for part in parts):
        return None
    return [number for part in parts if part is not None for number in part]


def _list_elements(graph: Graph, name: str) -> list[int | None] | None:
    """As `_find_elements`, of a value whose maker is not looked at."""
    constant = graph.constant(name)
    if constant is not None:
        return [int(number) for number in to_numpy(constant).reshape(-1)[: MOST_DIMENSIONS + 1]]
    value_type = graph.type_of(name)
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    count = shape[0] if shape is not None and len(shape) == 1 else None
    if not isinstance(count, int) or count > MOST_DIMENSIONS:
        return None
    return [None] * count

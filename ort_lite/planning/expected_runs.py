"""Expected number of runs of a body in one run of the graph around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType

if TYPE_CHECKING:
    from ort_lite.model.graph import Graph

IF_BRANCH = 0.5
ASSUMED_TRIPS = 8
"""Of a Loop or Scan whose number of iterations is not in the model."""
MOST_TRIPS = 1 << 20
"""A larger number means that a condition ends the Loop: PyTorch writes 2**63 - 1 for `while`."""


def expected_runs(graph: Graph, index: int) -> float:
    """How often each body of a node runs when the node runs once; assumed where it varies."""
    node = graph.nodes[index]
    if node.op_type == "If":
        return IF_BRANCH
    if node.op_type == "Loop":
        return _constant_trips(graph, node.inputs[0] if node.inputs else "")
    if node.op_type == "Scan":
        return _scanned_length(graph, index)
    return 1.0


def _constant_trips(graph: Graph, name: str) -> float:
    constant = graph.constant(name) if name else None
    if constant is None or not isinstance(constant.data, memoryview | bytes):
        return ASSUMED_TRIPS
    data = bytes(constant.data[:8])  # Loop's trip count is int64
    trips = int.from_bytes(data, "little", signed=True)
    return max(0, trips) if len(data) == 8 and trips <= MOST_TRIPS else ASSUMED_TRIPS


def _scanned_length(graph: Graph, index: int) -> float:
    """Length of the last input, which is a scanned one, along the first axis."""
    node = graph.nodes[index]
    lengths = graph.type_of(node.inputs[-1]) if node.inputs else None
    shape = lengths.shape if isinstance(lengths, TensorType) else None
    if not shape or not isinstance(shape[0], int) or node.attributes.get("scan_input_axes"):
        return ASSUMED_TRIPS
    return shape[0]

"""Which execution provider got which nodes, in onnxruntime's form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ort_lite.planning.placement import all_partitions
from ort_lite.status import Fail

if TYPE_CHECKING:
    from ort_lite.options import SessionOptions
    from ort_lite.planning.preparation import PreparedGraph

RECORD_KEY = "session.record_ep_graph_assignment_info"


@dataclass(frozen=True, slots=True)
class OrtEpAssignedNode:
    """A node of the model."""

    name: str
    domain: str
    op_type: str


@dataclass(frozen=True, slots=True)
class OrtEpAssignedSubgraph:
    """Nodes that one EP runs together."""

    ep_name: str
    nodes: tuple[OrtEpAssignedNode, ...]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """In the order in which they run."""
        return list(self.nodes)


def assignment_info(
    prepared: PreparedGraph, options: SessionOptions
) -> list[OrtEpAssignedSubgraph]:
    """Every partition, bodies included; where onnxruntime runs kernels, it gives single nodes.

    Raises:
        Fail: The session was made without `session.record_ep_graph_assignment_info`, with
            onnxruntime's text. `session.explain()` needs no such entry.
    """
    if not options.flag(RECORD_KEY):
        raise Fail(
            f"Session configuration entry '{RECORD_KEY}' must be set to \"1\" to retrieve EP graph "
            "assignment information."
        )
    return [
        OrtEpAssignedSubgraph(
            part.ep.name,
            tuple(
                OrtEpAssignedNode(node.name, node.domain, node.op_type) for node in part.graph.nodes
            ),
        )
        for part in all_partitions(prepared)
    ]

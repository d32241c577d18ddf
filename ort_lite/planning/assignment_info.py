"""Which execution provider got which nodes, in onnxruntime's form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ort_lite.options import SessionOptions
    from ort_lite.planning.prepared_graph import PreparedGraph

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
    prepared: PreparedGraph, options: SessionOptions, providers: Sequence[str]
) -> list[OrtEpAssignedSubgraph]:
    """The nodes of each EP, in the order of `providers`; bodies precede their graph.

    A partition that an EP compiled is one subgraph. Each node of the default EP is one of its
    own, as it is for ONNX Runtime, where that EP runs single kernels.

    Raises:
        Fail: The session was made without `session.record_ep_graph_assignment_info`, with
            onnxruntime's text. `session.explain()` needs no such entry.
    """
    if not options.flag(RECORD_KEY):
        raise Fail(
            f"Session configuration entry '{RECORD_KEY}' must be set to \"1\" to retrieve EP graph "
            "assignment information."
        )
    subgraphs = list(_subgraphs(prepared))
    return [one for name in providers for one in subgraphs if one.ep_name == name]


def _subgraphs(prepared: PreparedGraph) -> Iterator[OrtEpAssignedSubgraph]:
    bodies = [
        (part.nodes[index], key, body)
        for part in prepared.partitions
        for (index, key), body in part.bodies.items()
    ]
    for _, _, body in sorted(bodies, key=lambda one: one[:2]):
        yield from _subgraphs(body)
    for part in prepared.partitions:
        nodes = [
            OrtEpAssignedNode(node.name, node.domain, node.op_type) for node in part.graph.nodes
        ]
        if part.ep.name == DEFAULT_PROVIDER:
            yield from (OrtEpAssignedSubgraph(part.ep.name, (node,)) for node in nodes)
        else:
            yield OrtEpAssignedSubgraph(part.ep.name, tuple(nodes))

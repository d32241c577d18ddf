"""Inputs of a decoder that OpenVINO computes without elements: caches before the first token.

OpenVINO does not compute each operator without elements, so runs with an empty input go elsewhere.
GroupQueryAttention is written out so that a cache of length 0 only has new positions appended to
it (group_attention.py), and nothing behind it is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.compile.group_attention import DOMAIN, OPERATOR, PAST

if TYPE_CHECKING:
    from ort_lite.ep import Graph


def find_empty_caches(graph: Graph) -> frozenset[int]:
    """Positions of the inputs that are nothing but the past keys or values of an attention."""
    outputs = {info.name for info in graph.outputs}
    return frozenset(
        position
        for position, info in enumerate(graph.inputs)
        if info.name not in outputs and _is_cache(graph, info.name)
    )


def _is_cache(graph: Graph, name: str) -> bool:
    readers = graph.consumers(name)
    return bool(readers) and all(
        (node.domain, node.op_type) == (DOMAIN, OPERATOR)
        and all(at in PAST for at, read in enumerate(node.inputs) if read == name)
        for node in (graph.nodes[index] for index in readers)
    )

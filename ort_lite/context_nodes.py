"""Which nodes of a graph are EPContext nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import AttributeType, GraphDef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_formats.onnx_model import Node

OP_TYPE = "EPContext"
DOMAIN = "com.microsoft"


def is_context_node(node: Node) -> bool:
    """Whether `node` is com.microsoft::EPContext."""
    return node.op_type == OP_TYPE and node.domain == DOMAIN


def has_context_nodes(graph: GraphDef) -> bool:
    """Whether the graph or a body in it has one."""
    return any(is_context_node(node) for node in all_nodes(graph))


def all_nodes(graph: GraphDef) -> Iterator[Node]:
    """Nodes of the graph and of every body in it."""
    for node in graph.nodes:
        yield node
        for attribute in node.attributes.values():
            if attribute.type == AttributeType.GRAPH and isinstance(attribute.value, GraphDef):
                yield from all_nodes(attribute.value)
            elif attribute.type == AttributeType.GRAPHS and isinstance(attribute.value, tuple):
                for body in attribute.value:
                    yield from all_nodes(body)

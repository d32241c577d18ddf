"""Bodies of control flow: the graphs in a node's attributes, and every graph below a graph."""

from __future__ import annotations

from itertools import islice
from operator import is_
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import AttributeType, GraphDef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ctx_formats.onnx_model import Attribute, Node


def bodies(node: Node) -> tuple[tuple[str, GraphDef], ...]:
    """The bodies of a node by key: the attribute's name, for one of GRAPHS `name#i`."""
    named_bodies: list[tuple[str, GraphDef]] = []
    for attribute in node.attributes.values():
        value = attribute.value
        if isinstance(value, GraphDef) and attribute.type == AttributeType.GRAPH:
            named_bodies.append((attribute.name, value))
        elif isinstance(value, tuple) and attribute.type == AttributeType.GRAPHS:
            named_bodies += [(f"{attribute.name}#{i}", body) for i, body in enumerate(value)]
    return tuple(named_bodies)


def map_bodies(node: Node, change: Callable[[GraphDef], GraphDef]) -> Node:
    """`node` with every body changed; the node itself where no body is another object."""
    named_bodies = bodies(node)
    return with_bodies(node, [change(body) for _, body in named_bodies]) if named_bodies else node


def map_paired_bodies(
    node: Node, other: Node, change: Callable[[GraphDef, GraphDef], GraphDef]
) -> Node:
    """`node` with its bodies changed, each seen together with that of a node like it."""
    pairs = zip(bodies(node), bodies(other), strict=True)
    return with_bodies(node, [change(mine, theirs) for (_, mine), (_, theirs) in pairs])


def map_nodes(graph: GraphDef, change: Callable[[Node], Node]) -> GraphDef:
    """`graph` with every node changed, those of bodies first; itself if none is."""

    def map_body(body: GraphDef) -> GraphDef:
        return map_nodes(body, change)

    nodes = tuple(change(map_bodies(node, map_body)) for node in graph.nodes)
    return graph if all(map(is_, nodes, graph.nodes)) else replace(graph, nodes=nodes)


def with_bodies(node: Node, graphs: Iterable[GraphDef]) -> Node:
    """`node` with `graphs` as its bodies, in the order of `bodies`; itself where none is new."""
    rest = iter(graphs)
    changed: dict[str, Attribute] = {}
    for name, attribute in node.attributes.items():
        value = attribute.value
        if isinstance(value, GraphDef) and attribute.type == AttributeType.GRAPH:
            new: object = next(rest)
            same = new is value
        elif isinstance(value, tuple) and attribute.type == AttributeType.GRAPHS:
            new = tuple(islice(rest, len(value)))
            same = all(map(is_, new, value))
        else:
            continue
        if not same:
            changed[name] = replace(attribute, value=new)
    return replace(node, attributes={**node.attributes, **changed}) if changed else node


def map_graph_bodies(graph: GraphDef, change: Callable[[GraphDef], GraphDef]) -> GraphDef:
    """`graph` with every body of its nodes changed; itself where no body is another object."""
    nodes = tuple(map_bodies(node, change) for node in graph.nodes)
    return graph if all(map(is_, nodes, graph.nodes)) else replace(graph, nodes=nodes)


def walk(graph: GraphDef) -> Iterator[GraphDef]:
    """The graph and every graph below it, each before its bodies, these in the order of nodes."""
    waiting = [graph]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += [body for node in reversed(graph.nodes) for _, body in reversed(bodies(node))]


def walk_nodes(graph: GraphDef) -> Iterator[Node]:
    """Nodes of the graph and of every graph below it, each before those of its bodies."""
    levels = [iter(graph.nodes)]
    while levels:
        for node in levels[-1]:
            yield node
            if inside := bodies(node):
                levels += [iter(body.nodes) for _, body in reversed(inside)]
                break
        else:
            levels.pop()

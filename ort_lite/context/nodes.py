"""The EPContext nodes of a graph and of the bodies in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import AttributeType, GraphDef, TensorType
from ort_lite.execution_provider import PartitionIo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctx_formats.onnx_model import Attribute, Node
    from ort_lite.model.graph import Graph

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


def interface(graph: Graph, node: Node) -> PartitionIo:
    """What a node takes and gives, as its graph declares it."""
    return PartitionIo(
        inputs=tuple(graph.info(name) for name in node.inputs),
        outputs=tuple(graph.info(name) for name in node.outputs),
    )


def without_output_shapes(io: PartitionIo, graph: Graph) -> PartitionIo:
    """`io` without the shapes of values that the model gives back.

    In a context of other software they are what the model's author declared, right or wrong:
    onnxruntime warns where a result has another shape. ort_lite itself writes what it knows.
    """
    final = {info.name for info in graph.outputs}
    return PartitionIo(
        inputs=io.inputs,
        outputs=tuple(
            replace(info, type=TensorType(info.type.elem_type))
            if info.name in final and isinstance(info.type, TensorType)
            else info
            for info in io.outputs
        ),
    )


def map_nodes(graph: GraphDef, change: Callable[[Node], Node]) -> GraphDef:
    """`graph` with every node changed, those of bodies first; itself if none is."""
    nodes = tuple(change(_with_bodies(node, change)) for node in graph.nodes)
    same = all(new is old for new, old in zip(nodes, graph.nodes, strict=True))
    return graph if same else replace(graph, nodes=nodes)


def _with_bodies(node: Node, change: Callable[[Node], Node]) -> Node:
    changed: dict[str, Attribute] = {}
    for name, attribute in node.attributes.items():
        value = attribute.value
        if attribute.type == AttributeType.GRAPH and isinstance(value, GraphDef):
            body: object = map_nodes(value, change)
            same = body is value
        elif attribute.type == AttributeType.GRAPHS and isinstance(value, tuple):
            body = tuple(map_nodes(one, change) for one in value)
            same = all(new is old for new, old in zip(body, value, strict=True))
        else:
            continue
        if not same:
            changed[name] = replace(attribute, value=body)
    return replace(node, attributes={**node.attributes, **changed}) if changed else node

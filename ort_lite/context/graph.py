"""The graph of a context model: compiled partitions become EPContext nodes, the rest stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import ValueInfo
from ort_lite.model.bodies import bodies, with_bodies
from ort_lite.model.graph import free_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.planning.prepared_graph import Partition, PreparedGraph


def context_graph(
    prepared: PreparedGraph, context_node: Callable[[Partition], Node | None]
) -> GraphDef:
    """Rebuild the definition of `prepared`, bodies included.

    Args:
        prepared: Partitions in the order in which they run, which becomes the order of nodes.
        context_node: The EPContext node of a partition, or None if its nodes stay.

    Returns:
        A graph that uses no constant that only compiled partitions used, with a type for
        every value that has one: EPContext has no shape inference.
    """
    graph = prepared.graph
    nodes = tuple(node for part in prepared.partitions for node in _nodes(part, context_node))
    used = {name for node in nodes for name in (*node.inputs, *free_names(node))}
    used |= {info.name for info in graph.outputs}
    definition = graph.definition
    open_names = {info.name for info in graph.overridable}
    kept = {
        name: tensor
        for name, tensor in definition.initializers.items()
        if name in used or name in open_names
    }
    free_inputs = {info.name for info in graph.inputs} | open_names
    return replace(
        definition,
        nodes=nodes,
        inputs=tuple(info for info in definition.inputs if info.name in free_inputs),
        initializers=kept,
        sparse_initializers={n: t for n, t in definition.sparse_initializers.items() if n in used},
        value_info=_value_info(prepared, nodes),
    )


def outputs_swapped(graph: GraphDef) -> GraphDef:
    """`graph` with the types of outputs that `value_info` has, too, changing places.

    In a session's graph an output has the type that the session shows, and `value_info` the one
    that inference finds, where the file declared another. Readers of a context model know the
    output's own type alone: the plug-in of ONNX Runtime refuses an EPContext node with results
    of another rank than that. So there it is the true one.
    """
    infos = dict(graph.value_info)
    outputs = list(graph.outputs)
    for index, info in enumerate(outputs):
        other = infos.get(info.name)
        if other is not None and other.type is not None and info.type is not None:
            outputs[index] = replace(info, type=other.type)
            infos[info.name] = replace(other, type=info.type)
    if outputs == list(graph.outputs):
        return graph
    return replace(graph, value_info=infos, outputs=tuple(outputs))


def _nodes(part: Partition, context_node: Callable[[Partition], Node | None]) -> Iterator[Node]:
    node = context_node(part)
    if node is not None:
        yield node
        return
    for local, kept in enumerate(part.graph.nodes):
        yield _with_bodies(kept, local, part, context_node)


def _with_bodies(
    node: Node, local: int, part: Partition, context_node: Callable[[Partition], Node | None]
) -> Node:
    return with_bodies(
        node,
        [
            context_graph(part.bodies[local, key], context_node)
            if (local, key) in part.bodies
            else body
            for key, body in bodies(node)
        ],
    )


def _value_info(prepared: PreparedGraph, nodes: tuple[Node, ...]) -> dict[str, ValueInfo]:
    graph = prepared.graph
    declared = {info.name for info in (*graph.definition.inputs, *graph.outputs)}
    known = graph.definition.value_info
    infos = {info.name: known[info.name] for info in graph.outputs if info.name in known}
    for node in nodes:
        for name in node.outputs:
            value_type = graph.type_of(name) if name and name not in declared else None
            if value_type is not None:
                infos[name] = ValueInfo(name, value_type)
    return infos

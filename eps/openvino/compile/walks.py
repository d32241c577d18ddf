"""What values of a graph are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ctx_formats.onnx_model import Node


def walk_back(
    makers: Mapping[str, Node], names: Iterable[str], stops: Callable[[Node], bool]
) -> list[Node]:
    """Nodes that values are computed from, without those where `stops`, and before them.

    Args:
        makers: By value the node that computes it.
        names: Of the values.
        stops: Whether the walk ends before a node.
    """
    nodes: dict[int, Node] = {}
    todo = list(names)
    while todo:
        maker = makers.get(todo.pop())
        if maker is not None and id(maker) not in nodes and not stops(maker):
            nodes[id(maker)] = maker
            todo.extend(filter(None, maker.inputs))
    return list(nodes.values())

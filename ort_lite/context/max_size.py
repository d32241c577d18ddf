"""`max_size`: working memory that the contexts of several models have in common.

QNN's spill-fill buffer is one: every context of a process may use the same, if it is as large as
the largest needs. Each node that holds a context therefore records a size; in a session group all
record the largest, which is known when the last model is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.ep_context import EpContextNode
from ctx_formats.lean_dataclass import replace
from ctx_formats.notes import read_notes
from ort_lite.context.nodes import is_context_node
from ort_lite.model.bodies import map_nodes, walk_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctx_formats.onnx_model import Model, Node


def largest_sizes(nodes: Iterable[EpContextNode]) -> dict[str, int]:
    """The largest `max_size` of each source that records one."""
    sizes: dict[str, int] = {}
    for node in nodes:
        if node.max_size > sizes.get(node.source, 0):
            sizes[node.source] = node.max_size
    return sizes


def largest_in(models: Iterable[Model]) -> dict[str, int]:
    """As `largest_sizes`, over whole models."""
    return largest_sizes(
        EpContextNode.from_node(node)
        for model in models
        for node in walk_nodes(model.graph)
        if is_context_node(node)
    )


def with_max_size(model: Model, sizes: Mapping[str, int]) -> Model:
    """`model` whose nodes record, where they record any, the size of their source.

    Itself if they do already.

    Raises:
        FormatError: A node is malformed, or was edited after it was written.
    """

    def set_max_size(node: Node) -> Node:
        if not is_context_node(node):
            return node
        context_node = EpContextNode.from_node(node)
        if context_node.max_size in (0, sizes.get(context_node.source)):
            return node
        notes = read_notes(context_node)
        changed = replace(context_node, max_size=sizes[context_node.source])
        return (notes.seal_into(changed) if notes is not None else changed).to_node()

    return replace(model, graph=map_nodes(model.graph, set_max_size))

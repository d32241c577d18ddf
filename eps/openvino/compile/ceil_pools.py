"""Pools of free dimensions with `ceil_mode`, written as pools without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType
from eps.openvino.support.pools import find_floor_padding

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

REPLACED = ("ceil_mode", "count_include_pad", "pads")


def write_out_ceil_pools(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with padding in place of `ceil_mode`, where that is the same for all sizes.

    A mean that counts padding has none (support/pools.py), so that it need not count the new one.
    """
    nodes = tuple(_write_out(node, graph) for node in definition.nodes)
    return replace(definition, nodes=nodes)


def _write_out(node: Node, graph: Graph) -> Node:
    padding = find_floor_padding(graph, node)
    if padding is None:
        return node
    attributes = {name: one for name, one in node.attributes.items() if name not in REPLACED}
    attributes["pads"] = Attribute("pads", AttributeType.INTS, padding)
    return replace(node, attributes=attributes)

"""Tile of dimensions of size 1, which is Expand: one broadcast instead of copies along each axis.

PaddlePaddle's assignments (`x[:, i] = y`) repeat the positions along one axis over all others, by
numbers that are computed from the shape of what is assigned to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ort_lite.transforms.mutable_graph import MutableGraph

EXPAND_CAME = 8
"""Opset of the first Expand; Tile has had these inputs since opset 6."""


def _tile(graph: MutableGraph, index: int) -> bool:
    """Tile by computed repeats where each axis has one element, or is repeated once."""
    node = graph.node(index)
    if graph.opset < EXPAND_CAME or len(node.inputs) != 2:
        return False
    single, repeats = _find_single(graph, node.inputs[0]), _find_repeats(graph, node.inputs[1])
    if single is None or repeats is None or len(single) != len(repeats):
        return False
    if not all(is_one or times == 1 for is_one, times in zip(single, repeats, strict=True)):
        return False
    graph.replace(index, replace(node, op_type="Expand", attributes={}))
    return True


def _find_single(graph: MutableGraph, name: str) -> list[bool] | None:
    """By axis, whether it has one element whatever the file declares; None without the rank."""
    shape = graph.certain_shape(name)
    if shape is not None:
        return [size == 1 for size in shape]
    made = graph.maker(name)
    if made is None or made[1].op_type != "Reshape" or made[1].domain not in ONNX_DOMAINS:
        return None
    inputs = made[1].inputs
    sizes = graph.array(inputs[1]) if len(inputs) > 1 else None
    return None if sizes is None or sizes.ndim != 1 else [size == 1 for size in sizes.tolist()]


def _find_repeats(graph: MutableGraph, name: str) -> list[int | None] | None:
    """Elements of a Concat of constants and of computed numbers, which are None."""
    made = graph.maker(name)
    if made is None or made[1].op_type != "Concat" or made[1].domain not in ONNX_DOMAINS:
        return None
    repeats: list[int | None] = []
    for part in made[1].inputs:
        constant = graph.array(part)
        if constant is not None:
            repeats += [int(number) for number in constant.reshape(-1)]
        elif graph.shape(part) == (1,):
            repeats.append(None)
        else:
            return None
    return repeats


TILE_TO_EXPAND = RewriteRule(name="TileToExpand", operators=frozenset(("Tile",)), rewrite=_tile)

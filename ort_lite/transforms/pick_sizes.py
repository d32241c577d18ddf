"""Gather and Slice of a Shape, where the sizes that they pick are known although others are not.

Exporters leave the batch free and compute with height and width, which are numbers. Positions of a
vision transformer are resized to a size that follows from them; OpenVINO takes seconds for that if
the size is not a constant in the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ort_lite.transforms.attributes import int_of
from ort_lite.transforms.eliminate import SLICE_TOOK_INPUTS, clamp
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from typing import Any

    from ctx_formats.onnx_model import Node
    from ort_lite.transforms.mutable_graph import MutableGraph

    Array = np.ndarray[Any, np.dtype[Any]]


def _pick(graph: MutableGraph, index: int) -> bool:
    node = graph.node(index)
    sizes = _find_sizes(graph, node.inputs[0])
    if sizes is None or graph.is_pinned(node.outputs[0]):
        return False
    chosen = (_gather if node.op_type == "Gather" else _slice)(graph, node, sizes)
    if chosen is None or not all(size is not None for size in chosen.reshape(-1)):
        return False
    name = graph.add_constant(f"{node.outputs[0]}/sizes", chosen.astype(np.int64))
    return graph.bypass(index, name)


def _gather(graph: MutableGraph, node: Node, sizes: Array) -> Array | None:
    """Gather-1 by constant indices."""
    places = graph.array(node.inputs[1])
    if places is None or int_of(node, "axis", 0) not in (0, -1):
        return None
    is_inside = (places >= -sizes.size) & (places < sizes.size)
    return np.asarray(sizes[places], object) if is_inside.all() else None


def _slice(graph: MutableGraph, node: Node, sizes: Array) -> Array | None:
    """Slice-10 forwards, by a constant start and end, and maybe axis and step."""
    if graph.opset < SLICE_TOOK_INPUTS:
        return None
    values = [0, sizes.size, 0, 1]
    for place, name in enumerate(node.inputs[1:]):
        value = graph.array(name) if name else None
        if value is not None and value.size == 1:
            values[place] = int(value.item())
        elif name:
            return None
    start, end, axis, step = values
    return sizes[start:end:step] if axis in (0, -1) and step > 0 else None


def _find_sizes(graph: MutableGraph, name: str) -> Array | None:
    """Elements of what a Shape makes, None for those that vary; None for anything else."""
    made = graph.maker(name)
    if made is None or made[1].op_type != "Shape" or made[1].domain not in ONNX_DOMAINS:
        return None
    dims = graph.certain_dims(made[1].inputs[0])
    if dims is None:
        return None
    start, end = int_of(made[1], "start", 0), int_of(made[1], "end", len(dims))
    kept = dims[clamp(start, len(dims)) : clamp(end, len(dims))]
    return np.array(kept, object)


PICK_SIZES = RewriteRule(
    name="SizesToInitializer", operators=frozenset(("Gather", "Slice")), rewrite=_pick
)

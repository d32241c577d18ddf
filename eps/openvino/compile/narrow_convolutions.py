"""Convolutions over inputs of width 1, computed along the other axis, for OpenVINO's CPU plug-in.

Its kernels compute a block of neighbours along the last axis at once. Where that axis has one
element, a convolution takes twice the processor time of the same one without the axis, and the sums
are the same to the bit (OpenVINO 2026.4.1, AVX2; magika: 22 to 11 ms). Models from frameworks that
have only 2-D convolutions contain such nodes.
"""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import AttributeType, DataType, Node, Tensor, TensorType

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Attribute, GraphDef
    from ort_lite.ep import Graph

OPERATOR = "Conv"
LEAST_PRODUCTS = 1 << 20
"""Multiplications from which the gain is larger than the time of two more nodes."""
ASSUMED_SIZE = 32
"""Of a free height."""
COPY = 0
"""In the shape of a Reshape: the size of the input at this place (Reshape-5)."""


def drop_widths(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph in which such convolutions have one axis less; `graph` is the same with its types.

    Outputs keep their names and shapes.
    """
    chosen = {id(node) for node in definition.nodes if _pays(node, graph)}
    if not chosen:
        return definition
    taken = {name for node in definition.nodes for name in (*node.inputs, *node.outputs)}
    taken |= {info.name for info in definition.inputs} | definition.initializers.keys()
    flat = _make_shape("flat", (COPY, COPY, COPY), taken)
    wide = _make_shape("wide", (COPY, COPY, COPY, 1), taken)
    added = {flat.name: flat, wide.name: wide}
    nodes: list[Node] = []
    for node in definition.nodes:
        if id(node) in chosen:
            nodes += _drop_width(node, (flat.name, wide.name), taken)
        else:
            nodes.append(node)
    return replace(
        definition, nodes=tuple(nodes), initializers={**definition.initializers, **added}
    )


def _pays(node: Node, graph: Graph) -> bool:
    """Whether a node is a convolution of [N, C, H, 1] by filters [M, C, kH > 1, 1], and large."""
    if node.op_type != OPERATOR or node.domain or graph.constant(node.inputs[1]) is None:
        return False
    x, w, y = (_shape(graph, name) for name in (*node.inputs[:2], node.outputs[0]))
    if len(x) != 4 or len(w) != 4 or len(y) != 4 or x[3] != 1 or w[3] != 1 or y[3] != 1:
        return False
    filters = [size if isinstance(size, int) else 1 for size in w]
    group = node.attributes.get("group")
    if filters[2] < 2 or (group is not None and group.value != 1) or _pads_width(node):
        return False
    height = y[2] if isinstance(y[2], int) else ASSUMED_SIZE
    return prod(filters) * height >= LEAST_PRODUCTS


def _pads_width(node: Node) -> bool:
    """Whether the width is padded: a stride could then lead to the padding alone."""
    pads = node.attributes.get("pads")
    return pads is not None and isinstance(pads.value, tuple) and any(pads.value[1::2])


def _shape(graph: Graph, name: str) -> tuple[object, ...]:
    constant, value_type = graph.constant(name), graph.type_of(name)
    if constant is not None:
        return tuple(constant.dims)
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    return tuple(shape or ())


def _drop_width(node: Node, shapes: tuple[str, str], taken: set[str]) -> list[Node]:
    flat, wide = shapes
    x, w, y = (_find_name(name, taken) for name in (*node.inputs[:2], node.outputs[0]))
    attributes = {name: _drop_last(name, value) for name, value in node.attributes.items()}
    return [
        Node("Reshape", (node.inputs[0], flat), (x,)),
        Node("Reshape", (node.inputs[1], flat), (w,)),
        replace(node, inputs=(x, w, *node.inputs[2:]), outputs=(y,), attributes=attributes),
        Node("Reshape", (y, wide), node.outputs),
    ]


def _drop_last(name: str, attribute: Attribute) -> Attribute:
    """An attribute of Conv-1 without what it says of the last axis; `pads` has two ends."""
    if attribute.type != AttributeType.INTS or not isinstance(attribute.value, tuple):
        return attribute
    numbers = attribute.value
    kept = (numbers[0], numbers[2]) if name == "pads" else numbers[:1]
    return replace(attribute, value=kept)


def _make_shape(base: str, sizes: tuple[int, ...], taken: set[str]) -> Tensor:
    data = memoryview(struct.pack(f"<{len(sizes)}q", *sizes))
    return Tensor(_find_name(base, taken), DataType.INT64, (len(sizes),), data)


def _find_name(base: str, taken: set[str]) -> str:
    number = 0
    while (name := f"{base}__narrow_{number}") in taken:
        number += 1
    taken.add(name)
    return name

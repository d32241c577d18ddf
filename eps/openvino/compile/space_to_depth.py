"""SpaceToDepth of a batch, in operators that Intel's NPU compiler accepts.

The compiler of OpenVINO 2026.4.1 refuses SpaceToDepth of more than one image for NPU 4000, 5010 and
5020 ("DMA pattern conversion check failure"). It accepts what ONNX SpaceToDepth-13 defines the
operator by: Reshape, Transpose, Reshape. They move elements and compute nothing.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType, DataType, Node, Tensor, TensorType

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef
    from ort_lite.ep import Graph

OPERATOR = "SpaceToDepth"
RANK = 4
FIRST_RESHAPE = 5
"""Version of operators from which the shape is an input of Reshape."""
ORDER = (0, 3, 5, 1, 2, 4)
"""[N, C, H/b, b, W/b, b] to [N, b, b, C, H/b, W/b]."""


def write_out_batches(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` without SpaceToDepth of batches; one of unknown channels or sizes stays."""
    if graph.opset_imports.get("", 1) < FIRST_RESHAPE:
        return definition
    taken = {name for node in definition.nodes for name in node.outputs}
    taken |= {info.name for info in definition.inputs} | definition.initializers.keys()
    nodes: list[Node] = []
    shapes: dict[str, Tensor] = {}
    for node in definition.nodes:
        sizes = _sizes_of_images(node, graph)
        if sizes is None:
            nodes.append(node)
            continue
        names = [_find_name(node.outputs[0], taken) for _ in range(4)]
        written, constants = _write_out(node, sizes, names)
        nodes += written
        shapes.update(constants)
    if not shapes:
        return definition
    return replace(
        definition, nodes=tuple(nodes), initializers={**definition.initializers, **shapes}
    )


def _sizes_of_images(node: Node, graph: Graph) -> tuple[int, int, int, int] | None:
    """Channels, height, width and block size of a SpaceToDepth that is written out; else None."""
    if node.op_type != OPERATOR or node.domain:
        return None
    value_type = graph.type_of(node.inputs[0])
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    size = node.attributes["blocksize"].value if "blocksize" in node.attributes else None
    if shape is None or len(shape) != RANK or shape[0] == 1:
        return None
    if not isinstance(size, int) or size < 1:
        return None
    channels, height, width = shape[1:]
    if not (isinstance(channels, int) and isinstance(height, int) and isinstance(width, int)):
        return None
    if min(channels, height, width) < 1 or height % size or width % size:
        return None
    return channels, height, width, size


def _write_out(
    node: Node, sizes: tuple[int, int, int, int], names: list[str]
) -> tuple[list[Node], dict[str, Tensor]]:
    """The three nodes, and the shapes that two of them have as constants."""
    channels, height, width, block = sizes
    rows, columns = height // block, width // block
    split, swapped, first, last = names
    perm = Attribute("perm", AttributeType.INTS, ORDER)
    nodes = [
        Node("Reshape", (node.inputs[0], first), (split,)),
        Node("Transpose", (split,), (swapped,), attributes={"perm": perm}),
        Node("Reshape", (swapped, last), node.outputs),
    ]
    # 0 is the batch as it is, which may be known to a run only.
    shapes = (
        _shape(first, 0, channels, rows, block, columns, block),
        _shape(last, 0, channels * block * block, rows, columns),
    )
    return nodes, {shape.name: shape for shape in shapes}


def _shape(name: str, *dims: int) -> Tensor:
    data = memoryview(struct.pack(f"<{len(dims)}q", *dims))
    return Tensor(name, DataType.INT64, (len(dims),), data)


def _find_name(base: str, taken: set[str]) -> str:
    number = 0
    while (name := f"{base}_blocks__{number}") in taken:
        number += 1
    taken.add(name)
    return name

"""Constant nodes become initializers, in bodies too, as ONNX Runtime does at load."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import (
    Attribute,
    DataType,
    Node,
    SparseTensor,
    Tensor,
)
from ort_lite.model.bodies import map_bodies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import GraphDef


def lift_constants(graph: GraphDef, *, outputs_too: bool = False) -> GraphDef:
    """`graph` with every Constant node turned into an initializer, and all of them dense.

    Constant-1 to Constant-25: attributes `value`, `sparse_value`, `value_float(s)`,
    `value_int(s)`, `value_string(s)`. Sparse ones get their zeros, as in ONNX Runtime, but for
    those that are graph outputs. A Constant without any of them, or with several, is left for the
    checker to complain about. A constant that is a graph output directly stays a node, since
    a graph output that no node makes would lose its place in the order of nodes.

    Args:
        graph: Of a model or a body.
        outputs_too: Whether constants that are graph outputs are lifted as well.
    """
    outputs = set() if outputs_too else {info.name for info in graph.outputs}
    lifted: dict[str, Tensor] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        tensor = None
        if node.op_type == "Constant" and node.domain == "" and len(node.outputs) == 1:
            tensor = _constant(node)
        if tensor is None or node.outputs[0] in outputs:
            kept.append(
                map_bodies(node, lambda body: lift_constants(body, outputs_too=outputs_too))
            )
        else:
            lifted[node.outputs[0]] = tensor
    sparse = graph.sparse_initializers
    made = {
        name: _dense_tensor(name, value) for name, value in sparse.items() if name not in outputs
    }
    lifted |= made
    if not lifted and all(a is b for a, b in zip(kept, graph.nodes, strict=True)):
        return graph
    return replace(
        graph,
        nodes=tuple(kept),
        initializers={**graph.initializers, **lifted},
        sparse_initializers={name: s for name, s in sparse.items() if name not in made},
    )


def _constant(node: Node) -> Tensor | None:
    if len(node.attributes) != 1:
        return None
    (attribute,) = node.attributes.values()
    name = node.outputs[0]
    if attribute.ref_attr_name:
        return None
    if isinstance(attribute.value, Tensor) and attribute.name == "value":
        return replace(attribute.value, name=name)
    if isinstance(attribute.value, SparseTensor):
        return _dense_tensor(name, attribute.value)
    return _from_scalars(name, attribute)


def _dense_tensor(name: str, sparse: SparseTensor) -> Tensor:
    from ort_lite.model.sparse_constants import dense_tensor  # noqa: PLC0415 - lazy: reload

    return dense_tensor(name, sparse)


def _from_scalars(name: str, attribute: Attribute) -> Tensor | None:
    value = attribute.value
    match attribute.name, value:
        case "value_float", float():
            return _pack(name, DataType.FLOAT, (), "f", (value,))
        case "value_floats", tuple():
            return _pack(name, DataType.FLOAT, (len(value),), "f", value)
        case "value_int", int():
            return _pack(name, DataType.INT64, (), "q", (value,))
        case "value_ints", tuple():
            return _pack(name, DataType.INT64, (len(value),), "q", value)
        case "value_string", bytes():
            return Tensor(name, DataType.STRING, (), (value,))
        case "value_strings", tuple():
            return Tensor(name, DataType.STRING, (len(value),), value)
        case _:
            return None


def _pack(
    name: str, data_type: DataType, dims: tuple[int, ...], code: str, values: Sequence[object]
) -> Tensor:
    data = struct.pack(f"<{len(values)}{code}", *values)
    return Tensor(name, data_type, dims, memoryview(data))

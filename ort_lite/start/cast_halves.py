"""Casts around float16 nodes that ONNX Runtime's CPU EP has no kernel for.

Loading an ONNX model, ONNX Runtime inserts them (InsertCastTransformer). Loading the ORT format it
transforms nothing, so that the file must have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import (
    Attribute,
    AttributeType,
    DataType,
    GraphDef,
    Node,
    TensorType,
    ValueInfo,
)
from ort_lite.model.bodies import bodies, map_bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_formats.onnx_model import ValueType


def cast_halves(
    graph: GraphDef,
    has_kernel: Callable[[Node], bool],
    around: Mapping[str, ValueType] | None = None,
) -> GraphDef:
    """`graph` with float16 nodes computing in float32 where there is no kernel for them.

    Args:
        graph: With a type for each value, nodes in order.
        has_kernel: Whether ONNX Runtime has a kernel of a node's operator for float16.
        around: Types of the values of the graphs around it.
    """
    types: dict[str, ValueType] = {**(around or {})}
    for name, tensor in graph.initializers.items():
        types[name] = TensorType(tensor.data_type, tensor.dims)
    for infos in (graph.outputs, graph.value_info.values(), graph.inputs):
        types.update({info.name: info.type for info in infos if info.type is not None})
    casts = _Casts(types)
    for node in graph.nodes:
        if any(True for _ in bodies(node)):
            casts.nodes.append(map_bodies(node, lambda body: cast_halves(body, has_kernel, types)))
        elif any(casts.is_half(name) for name in node.inputs) and not has_kernel(node):
            casts.widen(node)
        else:
            casts.nodes.append(node)
    return replace(graph, nodes=tuple(casts.nodes), value_info={**graph.value_info, **casts.infos})


class _Casts:
    """The nodes of one graph with casts between them.

    Attributes:
        nodes: In order.
        infos: Types of the new values.
    """

    def __init__(self, types: Mapping[str, ValueType]) -> None:
        self.nodes: list[Node] = []
        self.infos: dict[str, ValueInfo] = {}
        self._types = types
        self._wide: dict[str, str] = {}

    def is_half(self, name: str) -> bool:
        """Whether a value is a float16 tensor."""
        value_type = self._types.get(name)
        return isinstance(value_type, TensorType) and value_type.elem_type == DataType.FLOAT16

    def widen(self, node: Node) -> None:
        """Add `node` in float32, with the casts that it needs."""
        inputs = tuple(self._widen(name) if self.is_half(name) else name for name in node.inputs)
        halves = [name for name in node.outputs if self.is_half(name)]
        names = {name: self._declare(name) for name in halves}
        outputs = tuple(names.get(name, name) for name in node.outputs)
        self.nodes.append(replace(node, inputs=inputs, outputs=outputs))
        for name in halves:
            self._add_cast(names[name], name, DataType.FLOAT16)

    def _widen(self, name: str) -> str:
        """The value in float32, cast once."""
        if name not in self._wide:
            wide = self._wide[name] = self._declare(name)
            self._add_cast(name, wide, DataType.FLOAT)
        return self._wide[name]

    def _declare(self, name: str) -> str:
        """A new name for a float16 value in float32."""
        wide, count = f"{name}_float32", 0
        while wide in self._types or wide in self.infos:
            count += 1
            wide = f"{name}_float32_{count}"
        value_type = self._types[name]
        assert isinstance(value_type, TensorType), "is_half was asked"
        self.infos[wide] = ValueInfo(wide, TensorType(DataType.FLOAT, value_type.shape))
        return wide

    def _add_cast(self, source: str, target: str, data_type: DataType) -> None:
        to = Attribute("to", AttributeType.INT, int(data_type))
        self.nodes.append(
            Node("Cast", (source,), (target,), name=f"{target}_cast", attributes={"to": to})
        )

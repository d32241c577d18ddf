"""Writes nodes of ai.onnx for others that OpenVINO computes wrongly, or not at all."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType, DataType, Node, Tensor

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef


class NodeWriter:
    """Nodes in order, and constants, under names that the graph does not use."""

    def __init__(self, definition: GraphDef, prefix: str) -> None:
        """Begin without nodes.

        Args:
            definition: The graph that the nodes are for.
            prefix: Of the names.
        """
        self.nodes: list[Node] = []
        self.initializers: dict[str, Tensor] = {}
        self._prefix = prefix
        self._taken = {n for node in definition.nodes for n in (*node.inputs, *node.outputs)}
        self._taken |= {info.name for info in definition.inputs} | definition.initializers.keys()
        self._constants: dict[tuple[object, ...], str] = {}

    def add(
        self,
        op_type: str,
        *inputs: str,
        output: str = "",
        **attributes: Attribute | float | tuple[int, ...],
    ) -> str:
        """A node of one output; the name of that."""
        output = output or self._find_name(op_type)
        fields = {key: _attribute(key, value) for key, value in attributes.items()}
        self.nodes.append(Node(op_type, inputs, (output,), attributes=fields))
        return output

    def add_contrib(self, op_type: str, *inputs: str, **attributes: float) -> str:
        """A node of com.microsoft with one output; the name of that."""
        output = self._find_name(op_type)
        fields = {key: _attribute(key, value) for key, value in attributes.items()}
        node = Node(op_type, inputs, (output,), domain="com.microsoft", attributes=fields)
        self.nodes.append(node)
        return output

    def add_many(
        self, op_type: str, *inputs: str, count: int, **attributes: float | tuple[int, ...]
    ) -> tuple[str, ...]:
        """A node of `count` outputs; their names."""
        outputs = tuple(self._find_name(op_type) for _ in range(count))
        fields = {key: _attribute(key, value) for key, value in attributes.items()}
        self.nodes.append(Node(op_type, inputs, outputs, attributes=fields))
        return outputs

    def integers(self, *values: int, scalar: bool = False) -> str:
        """An int64 constant of one dimension, or of none."""
        dims = () if scalar else (len(values),)
        data = struct.pack(f"<{len(values)}q", *values)
        return self.constant(DataType.INT64, dims, data)

    def number(self, value: float) -> str:
        """A float32 constant without dimensions."""
        return self.constant(DataType.FLOAT, (), struct.pack("<f", value))

    def finish(self, definition: GraphDef) -> GraphDef:
        """`definition` with the nodes in place of its own, and the constants besides its own."""
        initializers = {**definition.initializers, **self.initializers}
        return replace(definition, nodes=tuple(self.nodes), initializers=initializers)

    def constant(self, kind: int, dims: tuple[int, ...], data: bytes) -> str:
        """A constant of a DataType, with its elements as ONNX's raw_data; the name of it."""
        key = (kind, dims, data)
        if key not in self._constants:
            name = self._constants[key] = self._find_name("constant")
            self.initializers[name] = Tensor(name, kind, dims, memoryview(data))
        return self._constants[key]

    def large_constant(self, kind: int, dims: tuple[int, ...], data: memoryview) -> str:
        """As `constant`, for data that is neither copied nor compared with that of others."""
        name = self._find_name("constant")
        self.initializers[name] = Tensor(name, kind, dims, data)
        return name

    def _find_name(self, base: str) -> str:
        number = len(self._taken)
        while (name := f"{self._prefix}_{base}__{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name


def _attribute(name: str, value: Attribute | float | tuple[int, ...]) -> Attribute:
    if isinstance(value, Attribute):
        return value
    if isinstance(value, tuple):
        return Attribute(name, AttributeType.INTS, value)
    kind = AttributeType.INT if isinstance(value, int) else AttributeType.FLOAT
    return Attribute(name, kind, value)

"""Writes operators of com.microsoft on quantised tensors out in operators on floats.

eps/openvino/support/quantised_forms.py says which, and when.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType, DataType, Node, Tensor, TensorType
from eps.openvino.support.quantised_forms import DOMAIN, FORMS
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef
    from ort_lite.ep import Graph

LOWEST = -3.4028234663852886e38
"""Of float32; infinity below it is quantised to the same step."""
LEFT_OUT = ("channels_last", "opset")
"""Attributes that the operators of ai.onnx do not have; their values are those that are tested."""


def is_quantised_form(node: Node) -> bool:
    """Whether a node is of one of these operators."""
    return node.domain == DOMAIN and node.op_type in FORMS


def write_out_forms(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph without these operators; `graph` is the same with its types."""
    writer = _Writer(definition, graph)
    for node in definition.nodes:
        if is_quantised_form(node):
            writer.write_out(node)
        else:
            writer.nodes.append(node)
    return replace(
        definition,
        nodes=tuple(writer.nodes),
        initializers={**definition.initializers, **writer.initializers},
    )


def write_out_graph(graph: Graph) -> Graph:
    """The graph that `write_out_forms` makes; `graph` itself where it has none of the operators."""
    if not any(map(is_quantised_form, graph.nodes)):
        return graph
    from ort_lite.ep import Graph as Written  # noqa: PLC0415 - lazy: reload

    return Written(write_out_forms(graph.definition, graph), graph.opset_imports, part_of=graph)


class _Writer:
    """Nodes in order, and constants, under names that the graph does not use."""

    def __init__(self, definition: GraphDef, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self.initializers: dict[str, Tensor] = {}
        self._graph = graph
        self._taken = {n for node in definition.nodes for n in (*node.inputs, *node.outputs)}
        self._taken |= {info.name for info in definition.inputs} | definition.initializers.keys()
        self._scalars: dict[tuple[int, bytes], str] = {}

    def write_out(self, node: Node) -> None:
        """The node's operator of ai.onnx on floats; the output keeps its name."""
        form = FORMS[node.op_type]
        tensors = form.find_tensors(len(node.inputs))
        floats = [self._dequantize(node, place) for place in tensors]
        before = () if form.condition is None else (node.inputs[form.condition],)
        result = self._find_name(node.outputs[0])
        attributes = self._attributes(node, form.operator)
        self.nodes.append(Node(form.operator, (*before, *floats), (result,), attributes=attributes))
        if self._may_lose(node, tensors):
            result = self._keep_apart(result)
        scale, zero = (self._scalar(node, form.result + i) for i in (0, 1))
        if not zero:  # of QuantizeLinear it would be uint8
            zero = self._zero(self._element_type(node.inputs[tensors[0]]))
        self.nodes.append(Node("QuantizeLinear", (result, scale, zero), (node.outputs[0],)))

    def _may_lose(self, node: Node, tensors: tuple[int, ...]) -> bool:
        """Whether a sum or product is with a constant, and its shape is free.

        Before a quantisation OpenVINO 2026.4.1 may lose the constant then; see `_check_quantize`
        in eps/openvino/support/conditions.py.
        """
        if FORMS[node.op_type].operator not in ("Add", "Mul"):
            return False
        value_type = self._graph.type_of(node.outputs[0])
        shape = value_type.shape if isinstance(value_type, TensorType) else None
        is_known = shape is not None and all(isinstance(size, int) for size in shape)
        operands = [self._graph.constant(node.inputs[place]) for place in tensors]
        return not is_known and any(operand is not None for operand in operands)

    def _keep_apart(self, name: str) -> str:
        """The same value behind a maximum, past which OpenVINO moves no constant."""
        output = self._find_name(name)
        lowest = self._add_scalar(DataType.FLOAT, struct.pack("<f", LOWEST))
        self.nodes.append(Node("Max", (name, lowest), (output,)))
        return output

    def _dequantize(self, node: Node, place: int) -> str:
        scale, zero = self._scalar(node, place + 1), self._scalar(node, place + 2)
        output = self._find_name(node.inputs[place])
        inputs = (node.inputs[place], scale, zero) if zero else (node.inputs[place], scale)
        self.nodes.append(Node("DequantizeLinear", inputs, (output,)))
        return output

    def _attributes(self, node: Node, operator: str) -> Mapping[str, Attribute]:
        kept = {key: value for key, value in node.attributes.items() if key not in LEFT_OUT}
        if operator == "Softmax":
            value_type = self._graph.type_of(node.inputs[0])
            shape = value_type.shape if isinstance(value_type, TensorType) else None
            assert shape is not None, "only a Softmax along a known last axis is accepted"
            kept["axis"] = Attribute("axis", AttributeType.INT, len(shape) - 1)
        return kept

    def _scalar(self, node: Node, place: int) -> str:
        """The name of a constant of one element without dimensions; "" for an omitted one."""
        name = node.inputs[place] if place < len(node.inputs) else ""
        constant = self._graph.constant(name) if name else None
        if constant is None or not constant.dims:
            return name
        return self._add_scalar(constant.data_type, to_numpy(constant).tobytes())

    def _zero(self, data_type: int) -> str:
        return self._add_scalar(data_type, bytes(1))

    def _add_scalar(self, data_type: int, data: bytes) -> str:
        key = (data_type, data)
        if key not in self._scalars:
            name = self._scalars[key] = self._find_name("scalar")
            self.initializers[name] = Tensor(name, data_type, (), memoryview(data))
        return self._scalars[key]

    def _element_type(self, name: str) -> int:
        constant, value_type = self._graph.constant(name), self._graph.type_of(name)
        if constant is not None:
            return constant.data_type
        return value_type.elem_type if isinstance(value_type, TensorType) else DataType.UINT8

    def _find_name(self, base: str) -> str:
        number = 0
        while (name := f"{base}__{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name

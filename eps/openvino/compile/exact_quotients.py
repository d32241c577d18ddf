"""DynamicQuantizeLinear in operators that OpenVINO computes to the bit, for its CPU plug-in.

OpenVINO's own conversion rounds to other steps than ONNX defines. Written out as the operator's
specification does (DynamicQuantizeLinear-11), it has three quotients, and OpenVINO replaces a
division by a product with the reciprocal, which is another float. Its transformation of divisions
leaves those alone that carry a note, as its own transformations write it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType, DataType, Node, Tensor

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    import openvino

    from ctx_formats.onnx_model import GraphDef

OPERATOR = "DynamicQuantizeLinear"
NOTE = "nonconvertable_divide_0"
"""Key in a node's runtime information: `ov::NonconvertibleDivide`, as OpenVINO spells it."""
MOST_STEPS = 255.0


def write_out_quantization(definition: GraphDef) -> tuple[GraphDef, frozenset[str]]:
    """A graph without DynamicQuantizeLinear, and the names of the quotients that must be exact."""
    if not any(node.op_type == OPERATOR and not node.domain for node in definition.nodes):
        return definition, frozenset()
    names = {name for node in definition.nodes for name in (*node.inputs, *node.outputs)}
    names |= {info.name for info in definition.inputs} | definition.initializers.keys()
    constants = {
        value: _find_name(f"quantization_{value:.0f}", names) for value in (0.0, 1.0, MOST_STEPS)
    }
    nodes: list[Node] = []
    quotients: set[str] = set()
    for node in definition.nodes:
        if node.op_type == OPERATOR and not node.domain:
            written = _Quantization(node, constants, names)
            nodes += written.nodes
            quotients |= written.quotients
        else:
            nodes.append(node)
    initializers = {
        name: Tensor(name, DataType.FLOAT, (), memoryview(struct.pack("<f", value)))
        for value, name in constants.items()
    }
    return (
        replace(
            definition,
            nodes=tuple(nodes),
            initializers={**definition.initializers, **initializers},
        ),
        frozenset(quotients),
    )


def _find_name(base: str, names: set[str]) -> str:
    number = 0
    while (name := f"{base}__{number}") in names:
        number += 1
    names.add(name)
    return name


class _Quantization:
    """The nodes of one DynamicQuantizeLinear.

    Attributes:
        nodes: In order.
        quotients: Names of their quotients.
    """

    def __init__(self, node: Node, constants: dict[float, str], names: set[str]) -> None:
        self.nodes: list[Node] = []
        self.quotients: set[str] = set()
        self._base, self._names = node.outputs[0], names
        zero, one, most = (constants[value] for value in (0.0, 1.0, MOST_STEPS))
        y, scale, point = (*node.outputs, "", "")[:3]
        (x,) = node.inputs
        low = self._add("Min", self._add("ReduceMin", x, keepdims=0), zero)
        high = self._add("Max", self._add("ReduceMax", x, keepdims=0), zero)
        span = self._add("Sub", high, low)
        flat = self._add("Equal", span, zero)
        step = self._add("Where", flat, one, self._divide(span, most), output=scale)
        away = self._add("Clip", self._divide(self._add("Sub", zero, low), step), zero, most)
        place = self._add("Round", away)
        self._add("Cast", place, output=point, to=DataType.UINT8)
        moved = self._add("Add", self._add("Round", self._divide(x, step)), place)
        self._add("Cast", self._add("Clip", moved, zero, most), output=y, to=DataType.UINT8)

    def _divide(self, left: str, right: str) -> str:
        name = self._add("Div", left, right)
        self.quotients.add(name)
        return name

    def _add(self, op_type: str, *inputs: str, output: str = "", **attributes: int) -> str:
        output = output or _find_name(self._base, self._names)
        fields = {
            key: Attribute(key, AttributeType.INT, value) for key, value in attributes.items()
        }
        self.nodes.append(Node(op_type, inputs, (output,), attributes=fields))
        return output


def keep_quotients(model: openvino.Model, quotients: AbstractSet[str]) -> None:
    """Have OpenVINO divide where a division makes one of the values `quotients`."""
    for node in model.get_ops():
        if node.get_type_name() == "Divide" and quotients & node.output(0).get_names():
            node.get_rt_info()[NOTE] = True

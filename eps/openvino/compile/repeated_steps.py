"""Leaves out quantisations of what is quantised to the same steps already, for OpenVINO.

onnxruntime's quantiser writes a QuantizeLinear and a DequantizeLinear behind a Reshape or Transpose
of quantised values, with the scale and zero point of its input. They change nothing: the quotient
of a product with the scale is nearer to the step than to others. onnxruntime's optimiser drops
them. OpenVINO computes each in a kernel of its own.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import AttributeType, DataType
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
MOVING = frozenset(("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Slice"))
"""Operators whose results are some of the elements of their first input."""
BYTES = (DataType.INT8, DataType.UINT8)
SCALES = 1e-30, 1e30
"""Between these neither a product with a byte nor its quotient loses bits at an end of float32."""
BODIES = (AttributeType.GRAPH, AttributeType.GRAPHS)


def drop_repeated_steps(definition: GraphDef) -> GraphDef:
    """A graph without such pairs; itself where there is none, or where bodies may read values."""
    attributes = (one for node in definition.nodes for one in node.attributes.values())
    if any(attribute.type in BODIES for attribute in attributes):
        return definition
    steps = _Steps(definition)
    outputs = {info.name for info in definition.outputs}
    renamed: dict[str, str] = {}
    for node in definition.nodes:
        if _is(DEQUANTIZE, node) and node.outputs[0] not in outputs:
            before = steps.find_maker(node, QUANTIZE)
            if before is not None and steps.is_repeated(before, node):
                name = before.inputs[0]
                renamed[node.outputs[0]] = renamed.get(name, name)
    if not renamed:
        return definition
    nodes = [
        replace(node, inputs=tuple(renamed.get(name, name) for name in node.inputs))
        for node in definition.nodes
        if node.outputs[0] not in renamed
    ]
    read = {name for node in nodes for name in node.inputs} | outputs
    kept = tuple(n for n in nodes if not _is(QUANTIZE, n) or n.outputs[0] in read)
    return replace(definition, nodes=kept)


def _is(operator: str, node: Node) -> bool:
    return node.op_type == operator and not node.domain


class _Steps:
    def __init__(self, definition: GraphDef) -> None:
        self._constants = definition.initializers
        self._makers = {name: node for node in definition.nodes for name in node.outputs if name}

    def find_maker(self, node: Node, operator: str) -> Node | None:
        """The node that makes the first input of another, if it is of an operator."""
        maker = self._makers.get(node.inputs[0])
        return maker if maker is not None and _is(operator, maker) else None

    def is_repeated(self, quantize: Node, dequantize: Node) -> bool:
        """Whether both have the scale and zero point of what the first one reads."""
        last = quantize
        while (maker := self._makers.get(last.inputs[0])) is not None:
            if maker.domain or maker.op_type not in MOVING:
                break
            last = maker
        source = self.find_maker(last, DEQUANTIZE)
        if source is None:
            return False
        first, *others = (self._read(node) for node in (source, quantize, dequantize))
        return first is not None and all(other == first for other in others)

    def _read(self, node: Node) -> tuple[object, ...] | None:
        """Scale and zero point, where both are constants of one element."""
        scale, zero = (self._constants.get(name) for name in (*node.inputs[1:], "", "")[:2])
        if scale is None or zero is None or prod(scale.dims) != 1 or prod(zero.dims) != 1:
            return None
        if scale.data_type != DataType.FLOAT or zero.data_type not in BYTES:
            return None
        factor = float(to_numpy(scale).reshape(()))
        in_range = SCALES[0] < factor < SCALES[1]
        return (factor, zero.data_type, int(to_numpy(zero).reshape(()))) if in_range else None

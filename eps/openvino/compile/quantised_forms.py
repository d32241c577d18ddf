"""Writes operators of com.microsoft on quantised tensors out in operators on floats.

eps/openvino/support/quantised_forms.py says which, and when; products are written by
quantised_products.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import Attribute, AttributeType, DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.node_facts import element_type_of, shape_of
from eps.openvino.support.quantised_forms import DOMAIN, FORMS
from eps.openvino.support.quantised_products import is_quantised_product
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Node
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
    writer = NodeWriter(definition, "quantised")
    forms = _FormWriter(writer, graph)
    for node in definition.nodes:
        if is_quantised_form(node):
            forms.write_out(node)
        elif is_quantised_product(graph, node):
            from eps.openvino.compile.quantised_products import write_out_product  # noqa: PLC0415 - lazy: rare

            write_out_product(node, graph, writer)
        else:
            writer.nodes.append(node)
    return writer.finish(definition)


def write_out_graph(graph: Graph) -> Graph:
    """The graph that `write_out_forms` makes; `graph` itself where it has none of the operators."""
    if not any(is_quantised_form(n) or is_quantised_product(graph, n) for n in graph.nodes):
        return graph
    from ort_lite.ep import Graph as Written  # noqa: PLC0415 - lazy: reload

    return Written(write_out_forms(graph.definition, graph), graph.opset_imports, part_of=graph)


class _FormWriter:
    def __init__(self, writer: NodeWriter, graph: Graph) -> None:
        self._writer = writer
        self._graph = graph

    def write_out(self, node: Node) -> None:
        """The node's operator of ai.onnx on floats; the output keeps its name."""
        form = FORMS[node.op_type]
        tensors = form.find_tensors(len(node.inputs))
        floats = [self._dequantize(node, place) for place in tensors]
        before = () if form.condition is None else (node.inputs[form.condition],)
        attributes = self._attributes(node, form.operator)
        result = self._writer.add(form.operator, *before, *floats, output="", **attributes)
        if self._may_lose(node, tensors):
            lowest = self._writer.number(LOWEST)  # OpenVINO moves no constant past a maximum
            result = self._writer.add("Max", result, lowest)
        scale, zero = (self._scalar(node, form.result + i) for i in (0, 1))
        if not zero:  # of QuantizeLinear it would be uint8
            kind = element_type_of(self._graph, node.inputs[tensors[0]])
            zero = self._writer.constant(DataType.UINT8 if kind is None else kind, (), bytes(1))
        self._writer.add("QuantizeLinear", result, scale, zero, output=node.outputs[0])

    def _may_lose(self, node: Node, tensors: tuple[int, ...]) -> bool:
        """Whether a sum or product is with a constant, and its shape is free.

        Before a quantisation OpenVINO 2026.4.1 may lose the constant then; see `_check_quantize`
        in eps/openvino/support/conditions.py.
        """
        if FORMS[node.op_type].operator not in ("Add", "Mul"):
            return False
        shape = shape_of(self._graph, node.outputs[0])
        is_known = shape is not None and all(isinstance(size, int) for size in shape)
        operands = [self._graph.constant(node.inputs[place]) for place in tensors]
        return not is_known and any(operand is not None for operand in operands)

    def _dequantize(self, node: Node, place: int) -> str:
        scale, zero = self._scalar(node, place + 1), self._scalar(node, place + 2)
        optional = (zero,) if zero else ()
        return self._writer.add("DequantizeLinear", node.inputs[place], scale, *optional)

    def _attributes(self, node: Node, operator: str) -> Mapping[str, Attribute]:
        kept = {key: value for key, value in node.attributes.items() if key not in LEFT_OUT}
        if operator == "Softmax":
            shape = shape_of(self._graph, node.inputs[0])
            assert shape is not None, "only a Softmax along a known last axis is accepted"
            kept["axis"] = Attribute("axis", AttributeType.INT, len(shape) - 1)
        return kept

    def _scalar(self, node: Node, place: int) -> str:
        """The name of a constant of one element without dimensions; "" for an omitted one."""
        name = node.inputs[place] if place < len(node.inputs) else ""
        constant = self._graph.constant(name) if name else None
        if constant is None or not constant.dims:
            return name
        return self._writer.constant(constant.data_type, (), to_numpy(constant).tobytes())

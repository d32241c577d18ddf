"""Quantised products that are written out for OpenVINO, and when.

OpenVINO 2026.4.1 has QLinearConv and QLinearMatMul itself, but applies scales by filter to the
channels of the input, and converts no scales by column; it lacks com.microsoft's QGemm. As
DequantizeLinear, Conv, MatMul or Gemm, and QuantizeLinear they are right, to one step where a
result is close to the middle between two. A QLinearConv that may be wrong with AMX (windows.py) is
written out, too, so that compile/byte_convolutions.py finds it. Below opset 13 DequantizeLinear has
no axis, and weights with scales along one are cast, shifted and scaled instead. tests/unit/openvino
compares each with onnxruntime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType
from eps.openvino.support.node_facts import shape_of
from eps.openvino.support.windows import is_wrong_with_amx, may_read_padding_alone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Node
    from eps.openvino.support.node_facts import NodeFacts
    from eps.openvino.support.table import SupportTable
    from ort_lite.ep import Graph

BYTES = (DataType.UINT8, DataType.INT8)
SCALES_BY_AXIS = 13
"""Opset of ai.onnx from which on DequantizeLinear has an axis."""


@dataclass(frozen=True, slots=True)
class QuantisedProduct:
    """Places of the inputs of a quantised product; 0 to 5 are both factors, as everywhere.

    Attributes:
        operator: Of ai.onnx, which computes the same on floats.
        result: Of the output's scale, followed by its zero point.
        bias: Of the int32 sums that are added; None if it has none.
        domain: Of the quantised operator.
    """

    operator: str
    result: int
    bias: int | None = None
    domain: str = ""


PRODUCTS: Mapping[str, QuantisedProduct] = {
    "QLinearConv": QuantisedProduct("Conv", 6, 8),
    "QLinearMatMul": QuantisedProduct("MatMul", 6),
    "QGemm": QuantisedProduct("Gemm", 7, 6, "com.microsoft"),
}
"""By operator."""


def is_quantised_product(graph: Graph, node: Node) -> bool:
    """Whether a node is one of these that OpenVINO has not, or computes wrongly, itself."""
    product = PRODUCTS.get(node.op_type)
    if product is None or node.domain != product.domain:
        return False
    b = node.inputs[3]
    if node.domain or (product.operator == "Conv" and is_wrong_with_amx(node, shape_of(graph, b))):
        return True
    scales = (1, 4) if node.op_type == "QLinearMatMul" else (4,)
    return any(shape_of(graph, node.inputs[place]) != () for place in scales)


def product_problem(facts: NodeFacts, table: SupportTable) -> str:
    """Why such a node is not written out; "" if it is.

    Args:
        facts: About the node.
        table: Operators that OpenVINO computes right, of which it is written.
    """
    product, opset = PRODUCTS[facts.node.op_type], facts.graph.opset_imports.get("", 1)
    by_axis = () if opset >= SCALES_BY_AXIS else ("Cast", "Sub", "Mul")
    for operator in (product.operator, "DequantizeLinear", "QuantizeLinear", *by_axis):
        if problem := table.problem("", operator, opset):
            return problem
    if any(facts.elem_type(place) not in BYTES for place in (0, 3)):
        return f"OpenVINO: {facts.node.op_type} of other types than 8-bit integers"
    has_result = facts.has_input(product.result)
    if has_result != facts.has_input(product.result + 1):
        return "OpenVINO: of the output's scale and zero point one is omitted"
    for place in (1, product.result) if has_result else (1,):
        if not _is_constant(facts, place, 1, DataType.FLOAT):
            return "OpenVINO: a scale is not one constant of float32"
        if not _is_constant(facts, place + 1, 1, *BYTES):
            return "OpenVINO: a zero point is not one constant of 8 bits"
    return _weight_problem(facts, product)


def _weight_problem(facts: NodeFacts, product: QuantisedProduct) -> str:
    weights, axis = facts.constant(3), weight_axis(facts.node)
    if weights is None or len(weights.dims) < 2:
        return "OpenVINO: weights with scales of their own are not a constant"
    if product.operator != "Conv" and len(weights.dims) != 2:
        return "OpenVINO: scales by column are written out for matrices"
    count = weights.dims[axis]
    if not _is_constant(facts, 4, count, DataType.FLOAT):
        return "OpenVINO: there is not one constant scale of float32 for each filter or column"
    if not _is_constant(facts, 5, count, *BYTES):
        return "OpenVINO: there is not one constant zero point for each filter or column"
    if product.operator == "Conv" and may_read_padding_alone(facts, weights.dims[2:]):
        return "OpenVINO: windows of padding alone read past the input"
    if product.bias is not None and facts.is_runtime(product.bias):
        return "OpenVINO: the bias is not a constant"
    return ""


def _is_constant(facts: NodeFacts, place: int, count: int, *types: int) -> bool:
    """Whether an input is a constant of one element, or a vector of `count`."""
    constant = facts.constant(place)
    return (
        constant is not None
        and constant.data_type in types
        and constant.dims in ((), (1,), (count,))
    )


def weight_axis(node: Node) -> int:
    """The axis of the weights along which each filter or column has a scale."""
    if node.op_type == "QLinearConv":
        return 0
    turned = node.attributes.get("transB")
    return 0 if turned is not None and turned.value else 1

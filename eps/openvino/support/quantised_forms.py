"""Operators of com.microsoft on quantised tensors that are written out for OpenVINO, and when.

OpenVINO 2026.4.1 converts some of them itself, and then wraps where onnxruntime saturates. As
DequantizeLinear, an operator of ai.onnx and QuantizeLinear all of them are right, to one step where
a result is close to the middle between two. tests/unit/openvino compares each with onnxruntime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType
from eps.openvino.support.conditions import CONDITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.openvino.support.node_facts import NodeFacts
    from eps.openvino.support.table import SupportTable

DOMAIN = "com.microsoft"
BYTES = (DataType.UINT8, DataType.INT8)
SOFTMAX_ALONG_AXIS = 13
"""Opset of ai.onnx from which on Softmax is along one axis, not over all from it on."""


@dataclass(frozen=True, slots=True)
class QuantisedForm:
    """Places of the inputs of a quantised operator.

    Attributes:
        operator: Of ai.onnx, which computes the same on floats.
        tensors: Of quantised inputs, each followed by its scale and zero point. The last repeats
            to the end of a Concat's inputs.
        result: Of the output's scale, followed by its zero point.
        condition: Of the input that is not quantised; None if all are.
    """

    operator: str
    tensors: tuple[int, ...]
    result: int
    condition: int | None = None

    def find_tensors(self, count: int) -> tuple[int, ...]:
        """Places of the quantised inputs of a node of `count` inputs."""
        if self.operator != "Concat":
            return self.tensors
        return tuple(range(self.tensors[0], count - 2, 3))


FORMS: Mapping[str, QuantisedForm] = {
    "QLinearAdd": QuantisedForm("Add", (0, 3), 6),
    "QLinearMul": QuantisedForm("Mul", (0, 3), 6),
    "QLinearAveragePool": QuantisedForm("AveragePool", (0,), 3),
    "QLinearConcat": QuantisedForm("Concat", (2,), 0),
    "QLinearGlobalAveragePool": QuantisedForm("GlobalAveragePool", (0,), 3),
    "QLinearLeakyRelu": QuantisedForm("LeakyRelu", (0,), 3),
    "QLinearSigmoid": QuantisedForm("Sigmoid", (0,), 3),
    "QLinearSoftmax": QuantisedForm("Softmax", (0,), 3),
    "QLinearWhere": QuantisedForm("Where", (1, 4), 7, condition=0),
}
"""By operator of com.microsoft."""


def is_quantised_form(facts: NodeFacts) -> bool:
    """Whether a node is of one of these operators."""
    return facts.node.domain == DOMAIN and facts.node.op_type in FORMS


def quantised_problem(facts: NodeFacts, table: SupportTable) -> str:
    """Why a node of these operators is not written out; "" if it is.

    Args:
        facts: About the node.
        table: Operators that OpenVINO computes right, of which it is written.
    """
    form, opset = FORMS[facts.node.op_type], facts.graph.opset_imports.get("", 1)
    for operator in (form.operator, "DequantizeLinear", "QuantizeLinear"):
        if problem := table.problem("", operator, opset):
            return problem
    tensors = form.find_tensors(len(facts.node.inputs))
    if not tensors or any(facts.elem_type(place) not in BYTES for place in tensors):
        return f"OpenVINO: {facts.node.op_type} of other types than 8-bit integers"
    for place in (*(tensor + 1 for tensor in tensors), form.result):
        if not _is_scalar(facts, place, DataType.FLOAT):
            return "OpenVINO: a scale is not one constant of float32"
        if facts.has_input(place + 1) and not _is_scalar(facts, place + 1, *BYTES):
            return "OpenVINO: a zero point is not one constant of 8 bits"
    return _check_attributes(facts, form)


def _is_scalar(facts: NodeFacts, place: int, *types: int) -> bool:
    constant = facts.constant(place)
    return (
        constant is not None
        and constant.data_type in types
        and all(size == 1 for size in constant.dims)
    )


def _check_attributes(facts: NodeFacts, form: QuantisedForm) -> str:
    if facts.number("channels_last", 0):
        return "OpenVINO: channels come last"
    if facts.number("count_include_pad", 0):  # onnxruntime's padding is not that of AveragePool
        return "OpenVINO: padding counts"
    if form.operator == "Softmax" and softmax_axis(facts) is None:
        return "OpenVINO: a Softmax that is not along the last axis"
    check = CONDITIONS.get(form.operator)
    problem = check(facts) if check is not None else ""
    return f"OpenVINO: {problem}" if problem else ""


def softmax_axis(facts: NodeFacts) -> int | None:
    """The axis of a QLinearSoftmax-1, if it is the last, where all versions of Softmax agree."""
    shape = facts.shape(0)
    along_axis = facts.number("opset", SOFTMAX_ALONG_AXIS) >= SOFTMAX_ALONG_AXIS
    axis = facts.number("axis", -1 if along_axis else 1)
    if shape is None or axis not in (-1, len(shape) - 1):
        return None
    return len(shape) - 1

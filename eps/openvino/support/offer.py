"""The nodes that OpenVINO is offered: by operator table, conditions and element types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, TensorType
from eps.openvino.compile.rewrite import LOOP
from eps.openvino.support.conditions import CONDITIONS, WRONG
from eps.openvino.support.experts import DOMAIN as EXPERTS_DOMAIN
from eps.openvino.support.experts import PROJECTIONS
from eps.openvino.support.indices import GATHER_ND, check_unchecked
from eps.openvino.support.integers import integer_problem
from eps.openvino.support.magnitudes import Magnitudes
from eps.openvino.support.node_facts import NodeFacts
from eps.openvino.support.quantised_forms import is_quantised_form, quantised_problem
from eps.openvino.support.quantised_products import is_quantised_product, product_problem
from eps.openvino.support.ranks import rank_problem
from eps.openvino.support.shown_by_tests import SHOWN_BY_TESTS
from ort_lite.ep import Capability, element_text, type_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.openvino.support.npu_table import NpuTable
    from eps.openvino.support.table import SupportTable
    from ort_lite.ep import GraphView

TYPES = frozenset(
    (
        DataType.FLOAT,
        DataType.FLOAT16,
        DataType.BOOL,
        DataType.INT8,
        DataType.UINT8,
        DataType.INT16,
        DataType.UINT16,
        DataType.INT32,
        DataType.INT64,
    )
)
"""Element types that OpenVINO's CPU plug-in computes in at least their own width. It computes
float64 in float32 and unsigned 32- and 64-bit integers in int32, silently."""


NPU_CONSTANTS: Mapping[str, int] = {"OneHot": 1, "TopK": 1}
"""Operator to its input that must be constant on an NPU: at any other, the compiler of OpenVINO
2026.4.1 ends the process ("LLVM ERROR: Failed to infer result type(s)")."""
BODY_IEEE = "OpenVINO: bodies are not written out for ieee_semantics"


def capability(
    view: GraphView,
    table: SupportTable,
    *,
    ieee: bool = False,
    npu: NpuTable | None = None,
    exact: bool = True,
) -> Capability:
    """Support or refusal of every candidate.

    Args:
        view: The candidates.
        table: Operators that OpenVINO computes correctly.
        ieee: Whether nodes that lose NaN are refused, too.
        npu: Operators that the NPU's compiler accepts; None for other devices.
        exact: Whether the device's quotients can be had to the bit, and indices be checked: on a
            CPU.
    """
    supported = set()
    refused = {}
    magnitudes = Magnitudes(view.graph)
    release = tuple(int(part) for part in table.openvino.split(".")[:2])
    for index in view.candidates:
        facts = NodeFacts(view.graph, index, magnitudes, release)
        reason = rank_problem(facts) or refusal(facts, table)
        if npu is not None and not reason:
            reason = _npu_problem(facts, npu)
        if not exact and not reason:
            reason = _elsewhere_problem(facts)
        if ieee and not reason:
            from eps.openvino.compile.ieee import ieee_problem  # noqa: PLC0415 - lazy: rare

            reason = BODY_IEEE if view.graph.bodies(index) else ieee_problem(facts)
        if reason:
            refused[index] = reason
        else:
            supported.add(index)
    return Capability(frozenset(supported), refused)


def refusal(facts: NodeFacts, table: SupportTable) -> str:
    """Why OpenVINO does not get this node; "" if it does."""
    node = facts.node
    if node.domain == "" and node.op_type == LOOP:
        from eps.openvino.support.loops import loop_problem  # noqa: PLC0415 - lazy: rare

        return _type_problem(facts) or loop_problem(facts, table, refusal)
    if node.domain == "" and node.op_type in WRONG:
        return f"OpenVINO computes {node.op_type} wrong: {WRONG[node.op_type]}"
    if (node.domain, node.op_type) in SHOWN_BY_TESTS:
        problem = SHOWN_BY_TESTS[node.domain, node.op_type](facts)
        return _type_problem(facts) or (problem and f"OpenVINO: {problem}")
    if is_quantised_form(facts):
        return _type_problem(facts) or quantised_problem(facts, table)
    if is_quantised_product(facts.graph, node):
        return _type_problem(facts) or product_problem(facts, table)
    return (
        table.problem(node.domain, node.op_type, facts.opset)
        or _type_problem(facts)
        or integer_problem(facts)
        or _check_condition(facts)
    )


def _npu_problem(facts: NodeFacts, table: NpuTable) -> str:
    node = facts.node
    position = NPU_CONSTANTS.get(node.op_type) if node.domain == "" else None
    if position is None or not facts.is_runtime(position):
        return table.problem(node.domain, node.op_type, facts.input_types())
    return f"'{node.inputs[position]}' is not constant, which ends the NPU's compiler"


def _elsewhere_problem(facts: NodeFacts) -> str:
    """What is written out for CPUs alone: steps are off by one elsewhere, and indices unchecked."""
    if is_quantised_form(facts) or is_quantised_product(facts.graph, facts.node):
        return f"OpenVINO: {facts.node.op_type} is written out for CPUs alone"
    if facts.node.domain == EXPERTS_DOMAIN and facts.node.op_type in PROJECTIONS:
        return f"OpenVINO: {facts.node.op_type} is written out for CPUs alone"
    if not facts.node.domain and facts.node.op_type == GATHER_ND:
        problem = check_unchecked(facts)
        return f"OpenVINO: {problem}" if problem else ""
    if facts.node.domain or facts.node.op_type != "DynamicQuantizeLinear":
        return ""
    return (
        "OpenVINO computes DynamicQuantizeLinear wrong on this device: rounds to another step "
        "than ONNX defines"
    )


def _check_condition(facts: NodeFacts) -> str:
    node = facts.node
    check = CONDITIONS.get(node.op_type) if node.domain == "" else None
    problem = check(facts) if check is not None else ""
    return f"OpenVINO: {problem}" if problem else ""


def _type_problem(facts: NodeFacts) -> str:
    graph, node = facts.graph, facts.node
    for name in (*node.inputs, *node.outputs):
        if not name:
            continue
        constant = graph.constant(name)
        if constant is not None:
            if constant.data_type not in TYPES:
                return f"constant '{name}' is {element_text(constant.data_type)}"
            continue
        value_type = graph.type_of(name)
        if value_type is None:
            continue  # a com.microsoft neighbour; OpenVINO's own conversion decides
        if not isinstance(value_type, TensorType) or value_type.elem_type not in TYPES:
            return f"'{name}' is {type_text(value_type)}"
    return ""

"""Conditions on operators, most of language models, that ONNX's test suite does not show right.

tests/unit/openvino compares each with onnxruntime or onnx.reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.compile.group_attention import find_head_size
from eps.openvino.support.einsum_forms import OLDEST_OPSET as OLDEST_EINSUM
from eps.openvino.support.einsum_forms import read_einsum
from eps.openvino.support.experts import experts_problem
from eps.openvino.support.fourier import dft_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.openvino.support.node_facts import NodeFacts

OLDEST_OPSET = 18
"""Opset of ai.onnx from which on the operators that are written have their axes as inputs."""
_QUERY, _PAST_KEY, _PAST_VALUE, _COS, _SIN = 0, 3, 4, 7, 8


def _check_attention(facts: NodeFacts) -> str:
    """Why a GroupQueryAttention is not written out; "" if it is."""
    unsupported = {9: "position ids", 10: "a bias of the scores", 11: "attention sinks"}
    for position, what in unsupported.items():
        if facts.has_input(position):
            return f"GroupQueryAttention with {what} is not written out"
    if any(facts.has_input(i) for i in range(12, len(facts.node.inputs))):
        return "GroupQueryAttention with quantised caches is not written out"
    if not facts.number("causal", 1) or facts.number("sliding_window_cache", 0):
        return "this form of GroupQueryAttention is not written out"
    if facts.number("smooth_softmax", -1) == 1 or facts.number("rotary_interleaved", 0):
        return "smooth_softmax and rotary_interleaved are not written out"
    if facts.is_output_used(3) or facts.number("local_window_size", -1) == 0:
        return "GroupQueryAttention with scores as an output is not written out"
    kinds = {facts.elem_type(_QUERY), facts.elem_type(_PAST_KEY)}
    if kinds not in ({DataType.FLOAT}, {DataType.FLOAT16}):
        return "GroupQueryAttention is written out for float32 and for float16"
    if facts.graph.opset_imports.get("", 1) < OLDEST_OPSET:
        return f"GroupQueryAttention is written out from opset {OLDEST_OPSET} on"
    return _size_problem(facts)


def _size_problem(facts: NodeFacts) -> str:
    """Sizes that have to be known when compiling."""
    size = find_head_size(facts.shape(_PAST_KEY))
    if not size or not facts.has_input(_PAST_VALUE):
        return "GroupQueryAttention without a past of known head size"
    if not facts.number("do_rotary", 0):
        return ""
    tables = [facts.shape(i) for i in (_COS, _SIN)]
    halves = {shape[1] for shape in tables if shape is not None and len(shape) == 2}
    if len(halves) != 1 or not all(isinstance(h, int) and 2 * h <= size for h in halves):
        return "GroupQueryAttention with tables of angles of unknown width"
    return ""


def _check_rows(facts: NodeFacts) -> str:
    """OpenVINO converts the operator with constant bytes, whose rows are picked along axis 0."""
    data = facts.constant(0)
    if data is None or facts.constant(2) is None or (facts.has_input(3) and facts.is_runtime(3)):
        return "GatherBlockQuantized of rows that are not constant"
    last = len(data.dims) - 1
    if data.data_type != DataType.UINT8 or facts.number("gather_axis", 0):
        return "GatherBlockQuantized of other rows than bytes"
    if facts.number("quantize_axis", 1) not in (last, -1):
        return "GatherBlockQuantized that is not quantised along the last axis"
    return ""


def _check_einsum(facts: NodeFacts) -> str:
    """Why an Einsum is not written out; "" if it is."""
    if facts.opset < OLDEST_EINSUM:
        return f"Einsum is written out from opset {OLDEST_EINSUM} on"
    form = read_einsum(facts.node, facts.graph)
    return form if isinstance(form, str) else ""


SHOWN_BY_TESTS: Mapping[tuple[str, str], Callable[[NodeFacts], str]] = {
    ("com.microsoft", "GroupQueryAttention"): _check_attention,
    ("com.microsoft", "GatherBlockQuantized"): _check_rows,
    ("com.microsoft", "MoE"): experts_problem,
    ("com.microsoft", "QMoE"): experts_problem,
    ("", "DFT"): dft_problem,
    ("", "Einsum"): _check_einsum,
    ("", "SimplifiedLayerNormalization"): lambda _: "",
}
"""By domain and operator, the reason why OpenVINO does not get a node, or ""."""

"""Integers beyond 32 bits: never in OpenVINO's hands, always right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
BIG = 1 << 40
I64 = np.int64


def array(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, I64)


def node(op: str, *names: str, **attributes: Any) -> Any:
    return helper.make_node(op, names, ["y"], **attributes)


Case = tuple[Any, dict[str, np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any]]]

KEPT_AWAY: dict[str, Case] = {
    "a float cast": (
        node("Cast", "x", to=TensorProto.INT64),
        {"x": np.array([1e12, -3.0], np.float32)},
        {},
    ),
    "a cast like an int64": (
        node("CastLike", "x", "t"),
        {"x": np.array([1e12], np.float32)},
        {"t": array(1)},
    ),
    "a large constant": (
        node("Where", "x", "big", "small"),
        {"x": np.array([True, False])},
        {"big": array(BIG, BIG), "small": array(1, 2)},
    ),
    "a large number in a long table": (
        node("Gather", "table", "x"),
        {"x": np.array([0, 99_999], np.int32)},
        {"table": np.arange(100_000) * BIG},
    ),
    "a large value to fill with": (
        node("ConstantOfShape", "x", value=numpy_helper.from_array(array(BIG))),
        {"x": array(3)},
        {},
    ),
    "int64 products": (
        node("MatMul", "x", "w"),
        {"x": array(1 << 20, 1 << 20).reshape(1, 2)},
        {"w": array(1 << 20, 1 << 20).reshape(2, 1)},
    ),
    "adding where it scatters": (
        node("ScatterND", "x", "at", "more", reduction="add"),
        {"x": array((1 << 31) - 1, 0)},
        {"at": array(0).reshape(1, 1), "more": array(1)},
    ),
}


def model(case: Case) -> bytes:
    made, inputs, constants = case
    graph = helper.make_graph(
        [made],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in inputs.items()
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        [numpy_helper.from_array(x, n) for n, x in constants.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("name", KEPT_AWAY)
def test_what_may_need_more_than_32_bits_is_computed_right(name: str) -> None:
    case = KEPT_AWAY[name]
    content = model(case)
    with ort.InferenceSession(content, providers=[OPENVINO, CPU]) as session:
        found = session.run(None, case[1])[0]
        assert list(session.explain().node_counts()) == [CPU]
        assert "32 bits" in str(session.explain())
    (expected,) = ReferenceEvaluator(content).run(None, case[1])
    np.testing.assert_array_equal(found, expected)


TAKEN: dict[str, Case] = {
    "a slice to the end": (
        node("Slice", "x", "start", "end"),
        {"x": array(1, 2, 3)},
        {"start": array(1), "end": array(np.iinfo(I64).max)},
    ),
    "a cast of narrow integers": (
        node("Cast", "x", to=TensorProto.INT64),
        {"x": np.array([-5, 7], np.int8)},
        {},
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_fits_32_bits_stays_with_openvino(name: str) -> None:
    case = TAKEN[name]
    with ort.InferenceSession(model(case), providers=[OPENVINO, CPU]) as session:
        found = session.run(None, case[1])[0]
        assert list(session.explain().node_counts()) == [OPENVINO]
    (expected,) = ReferenceEvaluator(model(case)).run(None, case[1])
    np.testing.assert_array_equal(found, expected)

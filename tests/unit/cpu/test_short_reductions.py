"""Sums over few elements along the last axis, and runs of sessions with a log level."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort
from eps.cpu import plan
from ort_lite.execution.run_context import current_run


def reduction(op_type: str, dtype: np.dtype, keep: int) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    node = helper.make_node(op_type, ["x", "axes"], ["y"], keepdims=keep)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", kind, [None, None, None])],
        [helper.make_tensor_value_info("y", kind, None)],
        [helper.make_tensor("axes", onnx.TensorProto.INT64, [1], [-1])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceSumSquare", "ReduceMean", "ReduceL2"])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9])
def test_a_short_last_axis_has_the_same_bits_as_a_long_one(
    dtype: type, op_type: str, length: int
) -> None:
    rng = np.random.default_rng(length)
    x = (rng.standard_normal((5, 33, length)) * 100).astype(dtype)
    model = reduction(op_type, np.dtype(dtype), length % 2)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"x": x})
    assert answer.shape == expected.shape
    assert answer.dtype == dtype
    if op_type in ("ReduceSum", "ReduceSumSquare"):
        np.testing.assert_array_equal(answer, expected)
    else:
        np.testing.assert_allclose(answer, expected, rtol=1e-6)


def test_a_log_level_makes_no_context_for_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts = []

    def noted() -> object:
        contexts.append(current_run())
        return contexts[-1]

    monkeypatch.setattr(plan, "current_run", noted)
    options = ort.SessionOptions()
    model = reduction("ReduceSum", np.dtype(np.float32), 1).SerializeToString()
    feed = {"x": np.ones((1, 2, 2), np.float32)}
    for level in (3, 0):
        options.log_severity_level = level
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        contexts.clear()
        session.run(None, feed)
        assert (contexts[0] is None) == (level == 3)

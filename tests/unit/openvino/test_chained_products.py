"""Quantised matrix products one after another, of any number of rows, on OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite

OPENVINO = "OpenVINOExecutionProvider"
NOTE = "one by one"
FORMS = {
    "DequantizeLinear": (
        "a = DequantizeLinear(x, s1, z1) wa = DequantizeLinear(w, sw, zw) t = MatMul(a, wa)"
        " q = QuantizeLinear(t, s2, z2) b = DequantizeLinear(q, s2, z2)"
        " va = DequantizeLinear(v, sw, zw) u = MatMul(b, va) y = QuantizeLinear(u, s3, z3)"
    ),
    "with a Relu": (
        "a = DequantizeLinear(x, s1, z1) wa = DequantizeLinear(w, sw, zw) t = MatMul(a, wa)"
        " r = Relu(t) q = QuantizeLinear(r, s2, z2) b = DequantizeLinear(q, s2, z2)"
        " va = DequantizeLinear(v, sw, zw) u = Gemm(b, va) y = QuantizeLinear(u, s3, z3)"
    ),
    "QLinearMatMul": (
        "q = QLinearMatMul(x, s1, z1, w, sw, zw, s2, z2)"
        " y = QLinearMatMul(q, s2, z2, v, sw, zw, s3, z3)"
    ),
    "QGemm": (
        "q = QLinearMatMul(x, s1, z1, w, columns, zeros, s2, z2)"
        " y = com.microsoft.QGemm(q, s2, z2, v, sw, zw, , s3, z3)"
    ),
}


def make_model(form: str, rows: int, shape: str) -> tuple[bytes, dict[str, Any]]:
    """Two products by 16 x 16 weights, and a feed; all sums are exact."""
    random = np.random.default_rng(rows)
    declared = f"{rows}, 16" if shape == "known" else "n, 16"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'
        f" g (uint8[{declared}] x) => (uint8[r, 16] y)"
        f"<float s1 = {{0.125}}, float s2 = {{0.5}}, float s3 = {{4}}, float sw = {{0.015625}},"
        f" uint8 z1 = {{128}}, uint8 z2 = {{136}}, uint8 z3 = {{128}}, int8 zw = {{0}}>"
        f"{{ {FORMS[form]} }}"
    )
    for name in ("w", "v"):
        weights = random.integers(-60, 61, (16, 16)).astype(np.int8)
        model.graph.initializer.append(numpy_helper.from_array(weights, name))
    by_column = np.full(16, 0.015625, np.float32), np.zeros(16, np.int8)
    for name, values in zip(("columns", "zeros"), by_column, strict=True):
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model.SerializeToString(), {"x": random.integers(0, 256, (rows, 16)).astype(np.uint8)}


@pytest.mark.parametrize("shape", ["known", "free"])
@pytest.mark.parametrize("rows", [1, 2, 4, 6, 8, 16])
@pytest.mark.parametrize("form", FORMS)
def test_both_products_are_right(form: str, rows: int, shape: str) -> None:
    data, feed = make_model(form, rows, shape)
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (right,) = onnxruntime.InferenceSession(data, plain).run(None, feed)
    options = ort_lite.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort_lite.InferenceSession(data, options, providers=[OPENVINO]) as session:
        (partition,) = session.explain().partitions
        (answer,) = session.run(None, feed)
    assert partition.ep == OPENVINO
    assert any(NOTE in note for note in partition.notes) == (shape == "known" and rows > 1)
    np.testing.assert_allclose(answer.astype(int), right.astype(int), atol=1)  # of a step


def test_the_property_stays_as_the_user_sets_it() -> None:
    data, _ = make_model("QLinearMatMul", 4, "known")
    config = {"load_config": '{"CPU": {"SNIPPETS_MODE": "ENABLE"}}'}
    options = ort_lite.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort_lite.InferenceSession(data, options, providers=[(OPENVINO, config)]) as session:
        (partition,) = session.explain().partitions
    assert not any(NOTE in note for note in partition.notes)

"""Constants for channels behind a product with as many columns stay what they are on OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
SIZE = 8
RANDOM = np.random.default_rng(31)
VALUES = {
    "w": RANDOM.standard_normal((SIZE, SIZE)).astype(np.float32),
    "small": RANDOM.integers(-127, 128, (SIZE, SIZE)).astype(np.int8),
    "scale": np.float32(0.01),
    "column": RANDOM.standard_normal(SIZE).astype(np.float32),
    "channel": RANDOM.uniform(0.2, 2, (SIZE, 1, 1)).astype(np.float32),
    "channel4": RANDOM.uniform(0.2, 2, (1, SIZE, 1, 1)).astype(np.float32),
    "channel5": RANDOM.uniform(0.2, 2, (SIZE, 1, 1, 1)).astype(np.float32),
    "each": RANDOM.uniform(0.2, 2, SIZE).astype(np.float32),
    "k": np.float32(0.3),
    "first": np.array([0]),
}
SHAPES = ("b, 8, n, 8", "b, 8, 8, 8", "b, c, n, m", "2, 8, n, 8", "2, 8, 8, 8")
BODIES = {
    "summands": "t = MatMul(x, w) y = Add(t, channel)",
    "summands on the left": "t = MatMul(x, w) y = Sub(channel, t)",
    "factors": "t = MatMul(x, w) y = Mul(t, channel4)",
    "divisors": "t = MatMul(x, w) y = Div(t, channel)",
    "factors behind a bias and a Relu": (
        "t = MatMul(x, w) u = Add(t, column) v = Relu(u) y = Mul(v, channel)"
    ),
    "summands behind a factor": "t = MatMul(x, w) u = Mul(t, k) y = Add(u, channel)",
    "factors behind Swish": "t = MatMul(x, w) u = Sigmoid(t) v = Mul(t, u) y = Mul(v, channel)",
    "factors behind Gelu": "t = MatMul(x, w) u = Gelu(t) y = Mul(u, channel)",
    "factors behind factors": "t = MatMul(x, w) u = Mul(t, column) y = Mul(u, channel)",
    "a BatchNormalization": (
        "t = MatMul(x, w) y = BatchNormalization(t, each, column, column, each)"
    ),
    "quantised weights": (
        "q = DequantizeLinear(small, scale) t = MatMul(x, q) y = Mul(t, channel)"
    ),
    "an Einsum": 't = Einsum <equation = "bchw,wv->bchv">(x, w) y = Add(t, channel)',
    "five dimensions": "t = MatMul(x, w) u = Unsqueeze(t, first) y = Add(u, channel)",
}
"""From `x` to `y`."""


def make_model(body: str, shape: str) -> bytes:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 20]> g (float[{shape}] x) => (y) {{ {body} }}"""
    )
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info("y"))
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in VALUES.items()
        if name in used
    )
    return model.SerializeToString()


def run_onnxruntime(model: bytes, feed: dict[str, Any]) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options).run(None, feed)[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_constants_for_channels_are_not_applied_to_columns(body: str, shape: str) -> None:
    model = make_model(body, shape)
    feed = {"x": RANDOM.standard_normal((2, SIZE, SIZE, SIZE)).astype(np.float32)}
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        session.disable_fallback()
        (answer,) = session.run(None, feed)
    np.testing.assert_allclose(answer, run_onnxruntime(model, feed), rtol=1e-5, atol=1e-5)


def test_what_is_no_number_passes() -> None:
    model = make_model("t = MatMul(x, w) y = Add(t, channel)", "b, 8, n, 8")
    x = RANDOM.standard_normal((2, SIZE, SIZE, SIZE)).astype(np.float32)
    x[0, 1, 2, 3], x[1, 1, 1, 1], x[1, 2, 3, 4] = np.nan, np.inf, -np.inf
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as session:
        session.disable_fallback()
        (answer,) = session.run(None, {"x": x})
    np.testing.assert_allclose(answer, run_onnxruntime(model, {"x": x}), rtol=1e-5, atol=1e-5)

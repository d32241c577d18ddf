"""A normalisation of quantised values keeps its epsilon on OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
RANDOM = np.random.default_rng(7)
TABLE = RANDOM.integers(0, 256, (6, 16)).astype(np.uint8)
SCALE = np.float32(0.0002)
"""The variance of what is normalised is 2e-4, of which an epsilon of 1e-5 is a twentieth."""
EMBEDDED = "g = Gather (table, ids) e = DequantizeLinear (g, s, z)"
WRITTEN_OUT = """
    m = ReduceMean <axes = [-1]> (h) d = Sub (h, m) p = Mul (d, d) v = ReduceMean <axes = [-1]> (p)
    a = Add (v, epsilon) r = Sqrt (a) n = Div (d, r)"""
LAYER = "n = LayerNormalization <epsilon = 0.00001> (h, ones)"
BODIES = {
    "a table that is dequantised": f"{EMBEDDED} h = Identity (e) {LAYER}",
    "two tables": f"{EMBEDDED} h = Add (e, e) {LAYER}",
    "written out": f"{EMBEDDED} h = Add (e, e) {WRITTEN_OUT}",
    "of instances": (
        f"{EMBEDDED} u = Unsqueeze (e, front)"
        " n = InstanceNormalization <epsilon = 0.00001> (u, three, nothing)"
    ),
    "a residual": (
        f"{EMBEDDED} n = com.microsoft.SkipLayerNormalization <epsilon = 0.00001>"
        " (e, e, ones, zeros)"
    ),
}
ENDS = {
    "quantised steps": """
        q = QuantizeLinear (n, o, z) x = DequantizeLinear (q, o, z)
        b = DequantizeLinear (weights, o) y = MatMul (x, b)""",
    "steps that are found in a run": """
        q, qs, qz = DynamicQuantizeLinear (n) t = MatMulInteger (q, weights, qz)
        f = Cast <to = 1> (t) y = Mul (f, qs)""",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_normalisation_of_dequantised_values_is_onnxruntimes(body: str, end: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (int64[3] ids) => (n, y) {{ {body} {end} }}"""
    model = onnx.parser.parse_model(text)
    values = {
        "table": TABLE,
        "s": SCALE,
        "z": np.uint8(120),
        "o": np.float32(0.02),
        "ones": np.ones(16, np.float32),
        "zeros": np.zeros(16, np.float32),
        "three": np.ones(3, np.float32),
        "nothing": np.zeros(3, np.float32),
        "front": np.array([0]),
        "epsilon": np.float32(1e-5),
        "weights": RANDOM.integers(-60, 61, (16, 8)).astype(np.int8),
    }
    (normalised, product), expected = run_both(model, values, {"ids": np.array([1, 5, 2])})
    np.testing.assert_allclose(normalised, expected[0], atol=1e-4)
    np.testing.assert_allclose(product, expected[1], atol=0.05)  # a step of one factor is 0.02


def run_both(
    model: onnx.ModelProto, values: dict[str, Any], feed: dict[str, np.ndarray]
) -> tuple[list[Any], list[Any]]:
    """Outputs of OpenVINO, and of onnxruntime, once the model has what it reads of `values`."""
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in values.items()
        if name in used
    )
    data = model.SerializeToString()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    options.log_severity_level = 3
    session = ort.InferenceSession(data, options, providers=[OPENVINO])
    assert session.explain().node_counts().keys() == {OPENVINO}
    peer = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return session.run(None, feed), peer.run(None, feed)


FACTORS = "f = DequantizeLinear (factors, s, z) x = Mul (d, f)"
STEPS = "p = QuantizeLinear (x, s, z) h = DequantizeLinear (p, s, z)"


@pytest.mark.parametrize("shape", ["n, 32, 4", "1, 32, n", "1, 32, 4", "n, m, 4"])
@pytest.mark.parametrize(
    "body",
    ["h = Identity (d)", f"{FACTORS} {STEPS}", f"{FACTORS} h = Identity (x)", "h = Neg (d)"],
    ids=["as they are", "factors and steps", "factors", "negated"],
)
@pytest.mark.parametrize(
    "reduction",
    [
        "ReduceSum <keepdims = 1> (h, axes)",
        "ReduceSum <keepdims = 0> (h, axes)",
        *(f"Reduce{name} <axes = [1]> (h)" for name in ("Mean", "Max", "Min", "L1", "L2")),
    ],
)
def test_a_reduction_of_dequantised_values_is_onnxruntimes(
    reduction: str, body: str, shape: str
) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[{shape}] i) => (float y) {{
      q = QuantizeLinear (i, s, z) d = DequantizeLinear (q, s, z) {body} y = {reduction} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    scale, zero = np.float32(0.05), np.int8(6)
    values = {
        "s": scale,
        "z": zero,
        "factors": RANDOM.integers(20, 127, (1, 32, 4)).astype(np.int8),
        "axes": np.array([1]),
    }
    steps = RANDOM.integers(-100, 100, (1, 32, 4))
    feed = {"i": (steps * scale).astype(np.float32)}
    (result,), (right,) = run_both(model, values, feed)
    # A sum may have elements that lie between two steps and are rounded to the other one.
    np.testing.assert_allclose(result, right, rtol=1e-4, atol=0.3)

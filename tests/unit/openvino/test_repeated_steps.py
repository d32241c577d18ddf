"""Quantisations that repeat the steps of what they quantise are left out on OpenVINO."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
CONFIG = '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'
RANDOM = np.random.default_rng(19)
LEFT_OUT = "left out: they repeat the steps of what they quantise"
VALUES = {
    "s": np.float32(0.03),
    "z": np.uint8(120),
    "z2": np.uint8(119),
    "s2": np.float32(0.031),
    "shape": np.array([1, 0, -1]),
    "one": np.array([1]),
    "two": np.array([2]),
    "weights": RANDOM.integers(-60, 61, (4, 3)).astype(np.int8),
    "ws": np.float32(0.02),
    "channels": np.full(4, 0.03, np.float32),
    "points": np.full(4, 120, np.uint8),
}
STEPS = "q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z)"
AGAIN = "e = QuantizeLinear (m, s, z) d = DequantizeLinear (e, s, z)"
PRODUCT = "w = DequantizeLinear (weights, ws) y = MatMul (d, w)"
TURNED = f"{STEPS} m = Transpose <perm = [0, 2, 3, 1]> (a)"
DROPPED = {
    "Transpose": f"{TURNED} {AGAIN} {PRODUCT}",
    "Reshape": f"{STEPS} m = Reshape (a, shape) {AGAIN} y = Relu (d)",
    "Slice": f"{STEPS} m = Slice (a, one, two, one) {AGAIN} y = Relu (d)",
    "two moves": f"{TURNED} {AGAIN} g = Slice (d, one, two, one) h = QuantizeLinear (g, s, z)"
    " i = DequantizeLinear (h, s, z) w = DequantizeLinear (weights, ws) y = MatMul (i, w)",
    "no move": f"{STEPS} m = Identity (a) {AGAIN} y = Relu (d)",
    "its bytes are read": f"{TURNED} {AGAIN} k = DequantizeLinear (e, s2, z) y = Add (d, k)",
}
KEPT = {
    "another zero point": f"{TURNED} e = QuantizeLinear (m, s, z2)"
    " d = DequantizeLinear (e, s, z2) y = Relu (d)",
    "another scale": f"{TURNED} e = QuantizeLinear (m, s2, z) d = DequantizeLinear (e, s2, z)"
    " y = Relu (d)",
    "another scale behind it": f"{TURNED} e = QuantizeLinear (m, s, z)"
    " d = DequantizeLinear (e, s2, z) y = Relu (d)",
    "arithmetic between": f"{STEPS} m = Mul (a, a) {AGAIN} y = Relu (d)",
    "scales by channel": "q = QuantizeLinear <axis = 1> (x, channels, points)"
    " a = DequantizeLinear <axis = 1> (q, channels, points) m = Identity (a)"
    " e = QuantizeLinear <axis = 1> (m, channels, points)"
    " d = DequantizeLinear <axis = 1> (e, channels, points) y = Relu (d)",
    "the graph's output": f"{STEPS} m = Identity (a) e = QuantizeLinear (m, s, z)"
    " y = DequantizeLinear (e, s, z)",
}


@pytest.mark.parametrize("batch", ["1", "n"])
@pytest.mark.parametrize("name", [*DROPPED, *KEPT])
def test_answers_are_onnxruntimes(name: str, batch: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[{batch}, 4, 6, 7] x) => (y) {{ {(DROPPED | KEPT)[name]} }}"""
    model = onnx.parser.parse_model(text)
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in VALUES.items()
        if name in used
    )
    data = model.SerializeToString()
    x = RANDOM.normal(0, 2, (1, 4, 6, 7)).astype(np.float32)
    settings = ort.SessionOptions()
    settings.add_session_config_entry("session.placement", "all")
    provider = (OPENVINO, {"load_config": CONFIG})
    peer = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (expected,) = peer.run(None, {"x": x})
    with ort.InferenceSession(data, settings, providers=[provider]) as session:
        (answer,) = session.run(None, {"x": x})
        notes = [note for part in session.explain().partitions for note in part.notes]
    assert any(LEFT_OUT in note for note in notes) == (name in DROPPED)
    np.testing.assert_allclose(answer, expected, rtol=1e-5, atol=1e-5)


def test_all_bytes_and_scales_of_all_sizes_come_through() -> None:
    """A quotient of a product with the scale is rounded to the byte that the product was of."""
    steps = np.arange(-255, 256).astype(np.float32)
    for scale in np.exp(RANDOM.uniform(np.log(1e-30), np.log(1e30), 1000)).astype(np.float32):
        np.testing.assert_array_equal(np.rint(steps * scale / scale), steps)


def test_a_constant_joined_with_sizes_gets_no_barrier() -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 4, 6, 7] x) => (y) {{ {STEPS} p = Shape (a) l = Gather (p, zero)
    j = Concat <axis = 0> (one, l, rest) m = Reshape (a, j) {AGAIN} y = Relu (d) }}"""
    model = onnx.parser.parse_model(text)
    extra = {"zero": np.array([0]), "rest": np.array([24, 7])}
    for name in ("s", "z", "one", *extra):
        value = np.asarray((VALUES | extra)[name])
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    data = model.SerializeToString()
    settings = ort.SessionOptions()
    settings.add_session_config_entry("session.placement", "all")
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    x = RANDOM.normal(0, 2, (2, 4, 6, 7)).astype(np.float32)
    peer = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    with ort.InferenceSession(data, settings, providers=[OPENVINO]) as session:
        np.testing.assert_allclose(session.run(None, {"x": x}), peer.run(None, {"x": x}), atol=1e-5)

"""HardSigmoid is a product, a sum and a Clip for OpenVINO, with the answers of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
CONFIG = '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'
RANDOM = np.random.default_rng(11)
WRITTEN = "HardSigmoid x1 written out as Add x1, Clip x1"
VALUES = {
    "w": RANDOM.normal(0, 0.5, (4, 4, 1, 1)).astype(np.float32),
    "k": RANDOM.integers(-90, 91, (4, 4, 3, 3)).astype(np.int8),
    "ks": np.float32(0.01),
    "s": np.float32(0.03),
    "z": np.uint8(120),
    "t": np.float32(1 / 255),
    "none": np.uint8(0),
}
STEPS = "q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z)"
SUM = f"{STEPS} f = DequantizeLinear (k, ks) c = Conv <pads = [1, 1, 1, 1]> (a, f)"
AGAIN = "e = QuantizeLinear (c, s, z) d = DequantizeLinear (e, s, z)"
BODIES = {
    "alone": "y = HardSigmoid (x)",
    "a gate": "c = Conv (x, w) h = HardSigmoid <alpha = 0.25, beta = 0.4> (c) y = Mul (c, h)",
    "a line of zeros": "c = Conv (x, w) y = HardSigmoid <alpha = 0.0, beta = 0.3> (c)",
    "quantised gates": (
        f"{SUM} {AGAIN} h = HardSigmoid <alpha = 0.16666667, beta = 0.5> (d)"
        " g = QuantizeLinear (h, t, none) i = DequantizeLinear (g, t, none) m = Mul (d, i)"
        " o = QuantizeLinear (m, s, z) y = DequantizeLinear (o, s, z)"
    ),
    "a gate of what is rectified": (
        f"{SUM} r = Relu (c) h = HardSigmoid (r) g = QuantizeLinear (h, t, none)"
        " y = DequantizeLinear (g, t, none)"
    ),
}
KEPT = {
    "falling lines": (
        f"{SUM} r = Relu (c) h = HardSigmoid <alpha = -0.5, beta = 0.9> (r)"
        " g = QuantizeLinear (h, t, none) y = DequantizeLinear (g, t, none)"
    ),
}


def run(body: str, batch: str, *, opset: int = 17, ieee: str = "0") -> tuple[float, list[str]]:
    """How far the answers are from onnxruntime's at most, and notes of the partition."""
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
    g (float[{batch}, 4, 6, 7] x) => (float[n, c, h, v] y) {{ {body} }}"""
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
    provider = (OPENVINO, {"ieee_semantics": ieee, "load_config": CONFIG})
    plain = onnxruntime.SessionOptions()  # whose sums of 8-bit integers saturate without VNNI
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs = onnxruntime.InferenceSession(data, plain, providers=["CPUExecutionProvider"])
    (expected,) = theirs.run(None, {"x": x})
    with ort.InferenceSession(data, settings, providers=[provider]) as ours:
        (answer,) = ours.run(None, {"x": x})
        notes = [note for part in ours.explain().partitions for note in part.notes]
    return float(abs(answer - expected).max()), notes


@pytest.mark.parametrize("batch", ["1", "n"])
@pytest.mark.parametrize("name", [*BODIES, *KEPT])
def test_answers_are_onnxruntimes(name: str, batch: str) -> None:
    body = {**BODIES, **KEPT}[name]
    apart, notes = run(body, batch)
    assert any(WRITTEN in note for note in notes) == (name in BODIES)
    step = 0 if "QuantizeLinear" not in body else 0.03 if "Mul" in body else 1 / 255
    assert apart <= 1.01 * step + 1e-6  # a step: quotients at a half


def test_it_stays_with_special_values_and_older_clips() -> None:
    body = "c = Conv (x, w) y = HardSigmoid (c)"
    for apart, notes in (run(body, "1", ieee="1"), run(body, "1", opset=10)):
        assert apart <= 1e-6
        assert not any(WRITTEN in note for note in notes)


@pytest.mark.parametrize("zero", [0, 64])
def test_gates_of_integers_are_those_of_floats(zero: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (uint8[3, 40] x) => (float[3, 40] y)
        <uint8 z = {{{zero}}}, int8 none = {{0}}, float s = {{0.0625}}, float s2 = {{0.015625}}>
        {{ d = DequantizeLinear (x, s, z) h = HardSigmoid (d) q = QuantizeLinear (h, s2, none)
          y = DequantizeLinear (q, s2, none) }}"""
    ).SerializeToString()
    feed = {"x": RANDOM.integers(0, 256, (3, 40)).astype(np.uint8)}
    settings = ort.SessionOptions()
    settings.add_session_config_entry("session.placement", "all")
    (expected,) = onnxruntime.InferenceSession(model).run(None, feed)
    with ort.InferenceSession(model, settings, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        np.testing.assert_array_equal(session.run(None, feed)[0], expected)

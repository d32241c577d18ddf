"""What OpenVINO would compute in quantised steps has the numbers between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
RANDOM = np.random.default_rng(23)
CLIPS = {
    "a Clip": "y = Clip(d, low, high)",
    "a Clip with one bound": "y = Clip(d, low)",
    "a Clip on steps, but for the last bit": "y = Clip(d, low20, high30)",
    "a Clip of what is moved": "t = Transpose <perm = [2, 0, 1]>(d) y = Clip(t, low, high)",
    "a Clip of maxima": "t = MaxPool <kernel_shape = [2]>(d) y = Clip(t, none, high)",
    "a Clip of parts": "t = Concat <axis = 1>(d, d) y = Clip(t, none, high)",
    "Max and Min": "t = Max(d, low) y = Min(t, high)",
    "Min and Max": "t = Min(d, high) y = Max(low, t)",
    "Relu and Min": "t = Relu(d) y = Min(t, high)",
    "Min, quantised": (
        "t = Min(d, high) q2 = QuantizeLinear(t, s, z) y = DequantizeLinear(q2, s, z)"
    ),
    "Min and its mean": "t = Min(d, high) y = ReduceMean <axes = [-1]>(t)",
}
SUMS = {
    "floats and steps": "y = Add(e, d)",
    "steps and floats": "y = Sub(d, e)",
    "steps that are rectified": "t = Relu(d) y = Add(t, e)",
    "three": "y = Sum(e, d, d)",
    "steps of another zero point, behind a maximum": (
        "q2 = QuantizeLinear(e, s2, z2) d2 = DequantizeLinear(q2, s2, z2) t = Max(d2, none)"
        " y = Add(t, d)"
    ),
}


def compare(body: str, scale: float, zero: int, *, kind: Any = np.int8, free: bool) -> None:
    """`d` is quantised and dequantised, `e` is not; within a tenth of a step of onnxruntime's.

    Numbers are whole steps, so that no engine has to round.
    """
    dims = "b, 4, n" if free else "3, 4, 10"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[{dims}] x, float[{dims}] e) => (y) {{
          q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) {body}
        }}"""
    )
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info("y"))
    values = {
        "s": np.float32(scale),
        "z": kind(zero),
        "s2": np.float32(scale),
        "z2": kind(zero // 2),
        "low": np.float32(-20.7 * scale),
        "high": np.float32(30.3 * scale),
        "low20": np.float32(-20 * scale),
        "high30": np.float32(30 * scale),
        "none": np.float32(0),
    }
    used = {name for node in model.graph.node for name in node.input}
    if "e" not in used:
        del model.graph.input[1]
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in values.items()
        if name in used
    )
    data = model.SerializeToString()
    feed = {
        name.name: (RANDOM.integers(-60, 61, (3, 4, 10)) * np.float32(scale)).astype(np.float32)
        for name in model.graph.input
    }
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = onnxruntime.InferenceSession(data, plain).run(None, feed)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(data, options, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        session.disable_fallback()
        (answer,) = session.run(None, feed)
    np.testing.assert_allclose(answer, expected, rtol=0, atol=0.1 * scale)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("scale", "zero"), [(0.0123, 0), (0.0123, 21), (1e-7, -21)])
@pytest.mark.parametrize("body", CLIPS.values(), ids=CLIPS)
def test_bounds_between_steps_are_kept(body: str, scale: float, zero: int, *, free: bool) -> None:
    compare(body, scale, zero, free=free)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("scale", "zero"), [(2.5e-7, 20), (5e-6, -1), (1e-10, 100), (0.02, 20)])
@pytest.mark.parametrize("body", SUMS.values(), ids=SUMS)
def test_sums_keep_zero_points_of_small_scales(
    body: str, scale: float, zero: int, *, free: bool
) -> None:
    compare(body, scale, zero, free=free)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("kind", "zero"), [(np.int8, 127), (np.int8, 0), (np.uint8, 127)])
@pytest.mark.parametrize("scale", [1e36, 1e35, 6e33, 1e33, 2e-38])
def test_scales_of_the_largest_numbers_are_kept(
    scale: float, kind: Any, zero: int, *, free: bool
) -> None:
    compare("y = Identity(d)", scale, zero, kind=kind, free=free)

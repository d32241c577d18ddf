"""What stands before a QuantizeLinear counts, on OpenVINO, with 8-bit kernels and without."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
STEP = 0.013
RANDOM = np.random.default_rng(19)
WEIGHTS = {
    "w": RANDOM.integers(-60, 61, (4, 4, 3, 3)).astype(np.int8),
    "ws": (RANDOM.random(4) * 0.01 + 0.001).astype(np.float32),
    "wz": np.zeros(4, np.int8),
    "s0": np.float32(0.02),
    "s": np.float32(STEP),
    "coarse": np.float32(4 * STEP),
    "low": np.float32(0),
    "high": np.float32(6),
    "k": np.float32(0.6180339),
    "v": np.array([0.5, 1.3, 0.7, 2], np.float32).reshape(1, 4, 1, 1),
    "m": np.array([0.5, 1.3, -0.7, 2], np.float32).reshape(1, 4, 1, 1),
}
QUANTISED = "q = QuantizeLinear(x, s0, z0) a = DequantizeLinear(q, s0, z0)"
SUM = f"{QUANTISED} f = DequantizeLinear <axis = 0>(w, ws, wz) b = Conv <pads = [1, 1, 1, 1]>(a, f)"
POOL = "MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]>"
TWICE = "e = QuantizeLinear(c, s, z) g = DequantizeLinear(e, s, z)"
ROUNDED = f"{SUM} r = QuantizeLinear(b, coarse, z) t = DequantizeLinear(r, coarse, z)"
TWO_ROUNDED = (
    f"{ROUNDED} j = Conv <pads = [2, 2, 2, 2], dilations = [2, 2]>(a, f)"
    " l = QuantizeLinear(j, coarse, z) o = DequantizeLinear(l, coarse, z)"
)
COARSE = "r = QuantizeLinear(c, coarse, z) t = DequantizeLinear(r, coarse, z)"
BODIES = {
    "factors": "d = Mul(x, v)",
    "factors of both signs": "d = Mul(x, m)",
    "summands": "d = Add(x, m)",
    "factors, then a Clip": "c = Mul(x, v) d = Clip(c, low, high)",
    "factors and summands": "c = Mul(x, v) e = Add(c, m) d = Clip(e, low, high)",
    "factors of quantised values": f"{QUANTISED} c = {POOL}(a) d = Mul(c, v)",
    "a convolution, a pool and a Clip": f"{SUM} c = {POOL}(b) d = Clip(c, low, high)",
    "a convolution, a pool and factors": f"{SUM} c = {POOL}(b) d = Mul(c, m)",
    "a convolution, a pool, a factor and a Clip": (
        f"{SUM} c = {POOL}(b) e = Mul(c, k) d = Clip(e, low, high)"
    ),
    "a convolution and a Clip": f"{SUM} d = Clip(b, low, high)",
    "a convolution and factors": f"{SUM} d = Mul(b, v)",
    "a convolution, a Relu and negative factors": f"{SUM} c = Relu(b) d = Mul(c, m)",
    "a rounded convolution and a summand": f"{ROUNDED} d = Add(x, t)",
    "a rounded convolution and a Relu": f"{ROUNDED} c = Add(t, x) d = Relu(c)",
    "a rounded convolution that is subtracted": f"{ROUNDED} d = Sub(x, t)",
    "a rounded convolution in a Sum": f"{ROUNDED} d = Sum(x, t)",
    "a clipped convolution, rounded": f"{SUM} c = Clip(b, low, high) {COARSE} d = Add(x, t)",
    "a scaled convolution, rounded": f"{SUM} c = Mul(b, k) {COARSE} d = Add(x, t)",
    "a convolution with summands, rounded": f"{SUM} c = Add(b, v) {COARSE} d = Add(x, t)",
    "a rounded convolution that is scaled": f"{ROUNDED} c = Mul(t, k) d = Add(x, c)",
    "a convolution rounded twice": (
        f"{ROUNDED} l = QuantizeLinear(t, s0, z) o = DequantizeLinear(l, s0, z) d = Add(x, o)"
    ),
    "two rounded convolutions": f"{TWO_ROUNDED} d = Add(t, o)",
    "a rounded convolution that others read": f"{TWO_ROUNDED} c = Add(t, o) d = Add(c, t)",
    "parts quantised twice": f"{SUM} c = Concat <axis = 1>(a, b) {TWICE} d = Relu(g)",
    "parts that are rectified, quantised twice": (
        f"{SUM} i = Concat <axis = 1>(a, b) c = Relu(i) {TWICE} d = Mul(g, k)"
    ),
    "a maximum of all": "d = GlobalMaxPool(x)",
    "maxima along an axis": "d = ReduceMax <axes = [-1]>(x)",
    "minima along axes, rectified": "c = ReduceMin <axes = [2, 3]>(x) d = LeakyRelu(c)",
    "maxima of quantised values": f"{QUANTISED} d = ReduceMax <axes = [1]>(a)",
    "averages of quantised values, rectified": (
        f"{QUANTISED} c = AveragePool <kernel_shape = [3, 3]>(a) d = LeakyRelu <alpha = 0.3>(c)"
    ),
    "parts quantised twice with nothing between": (
        f"{SUM} c = Concat <axis = 1>(a, a)"
        " e = QuantizeLinear(c, s0, z) d = DequantizeLinear(e, s0, z)"
    ),
}


def make_model(body: str, kind: Any, zero: int, batch: str) -> bytes:
    """The body, whose result `d` is quantised at last."""
    text = f"""<ir_version: 9, opset_import: ["" : 17]>
    g (float[{batch}, 4, 8, 8] x) => (float[n, c, h, i] y) {{
      {body} last = QuantizeLinear(d, s, z) y = DequantizeLinear(last, s, z)
    }}"""
    model = onnx.parser.parse_model(text)
    values = {**WEIGHTS, "z": np.array(zero, kind), "z0": np.array(54, kind)}
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in values.items()
        if name in used
    )
    return model.SerializeToString()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("batch", ["1", "n"])
@pytest.mark.parametrize(("kind", "zero"), [(np.uint8, 85), (np.int8, 20)])
@pytest.mark.parametrize("mode", ["", "NO"], ids=["8-bit kernels", "float32"])
def test_the_steps_are_those_of_onnxruntime(
    body: str, batch: str, kind: Any, zero: int, mode: str
) -> None:
    model = make_model(body, kind, zero, batch)
    feed = {"x": RANDOM.normal(0, 1.5, (1, 4, 8, 8)).astype(np.float32)}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = onnxruntime.InferenceSession(model, options).run(None, feed)
    config = {"INFERENCE_PRECISION_HINT": "f32", **({"LP_TRANSFORMS_MODE": mode} if mode else {})}
    provider = (OPENVINO, {"load_config": json.dumps({"CPU": config})})
    with ort.InferenceSession(model, providers=[provider, "CPUExecutionProvider"]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        (answer,) = session.run(None, feed)
    steps = abs(answer - expected) / STEP
    assert steps.max() <= 1.01
    assert np.count_nonzero(steps > 0.5) <= 0.02 * steps.size


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("d = Mul(x, v) y = QuantizeLinear(d, s, z)", np.float16),
        ("w = Cast <to = 1> (x) e = Mul(w, v) d = Cast <to = 10> (e) y = QuantizeLinear(d, s, z)",
         np.float32),
    ],
)  # fmt: skip
def test_factors_of_float16_are_kept(body: str, kind: type) -> None:
    text = f"""<ir_version: 9, opset_import: ["" : 19]>
    g (float16[n, 4, 8, 8] x) => (y) <uint8 z = {{85}}> {{ {body} }}"""
    model = onnx.parser.parse_model(text)
    factors = np.array([1, 2, -4, 8], kind).reshape(1, 4, 1, 1)
    for name, value in (("v", factors), ("s", np.float16(0.0625))):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    data = model.SerializeToString()
    feed = {"x": RANDOM.integers(-8, 9, (2, 4, 8, 8)).astype(np.float16) / np.float16(4)}
    (expected,) = onnxruntime.InferenceSession(data).run(None, feed)
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        np.testing.assert_array_equal(session.run(None, feed)[0], expected)


@pytest.mark.parametrize(
    "between",
    [
        "t = Identity(p)",
        "t = Relu(p)",
        "m = MaxPool <kernel_shape = [1, 2]>(p) t = Transpose <perm = [0, 1, 3, 2]>(m)",
    ],
)
@pytest.mark.parametrize("last", ["y = MatMul(t, mat)", "y = Conv(t, f)"])
@pytest.mark.parametrize("before", ["a = Identity(d)", "a = MaxPool <kernel_shape = [2, 2]>(d)"])
def test_averages_of_quantised_values_are_not_rounded(before: str, between: str, last: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 2, 10, 10] x) => (y)
    <float s = {{2}}, uint8 z = {{128}}, float ws = {{0.5}}, int8 wz = {{0}}> {{
      q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) {before}
      p = AveragePool <kernel_shape = [2, 2], strides = [2, 2]>(a)
      {between} f = DequantizeLinear(w, ws, wz) {last}
    }}"""  # fmt: skip
    model = onnx.parser.parse_model(text)
    shape = [onnx.helper.make_empty_tensor_value_info("y")]
    del model.graph.output[:]
    model.graph.output.extend(shape)
    feed = {"x": RANDOM.integers(-100, 100, (3, 2, 10, 10)).astype(np.float32)}
    rows = 4 if "Max" in before else 5
    mat = RANDOM.integers(-4, 5, (rows, 3)).astype(np.float32)
    weights = RANDOM.integers(-9, 10, (3, 2, 1, 1)).astype(np.int8)
    model.graph.initializer.extend(
        [numpy_helper.from_array(mat, "mat"), numpy_helper.from_array(weights, "w")]
    )
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    with ort.InferenceSession(model.SerializeToString(), providers=[OPENVINO]) as session:
        np.testing.assert_array_equal(session.run(None, feed)[0], expected)


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        (
            (1, 3, 6, 9),
            "p = Pad(d, first) e = QuantizeLinear(p, half, z) y = DequantizeLinear(e, half, z)",
        ),
        (
            (2, 3, 6, 9),
            "c = Concat <axis = 2>(d, d) e = QuantizeLinear(c, half, z)"
            " g = DequantizeLinear(e, half, z) f = DequantizeLinear(w, ws, none) y = Conv(g, f)",
        ),
        (
            (1, 3, 6, 9),
            "v = DequantizeLinear(u, ws, middle) t = ConvTranspose(d, v)"
            " e = QuantizeLinear(t, half, z) y = DequantizeLinear(e, half, z)",
        ),
        (
            (1, 3, 6, 9),
            "v = DequantizeLinear <axis = 1>(i, by, zeros) t = ConvTranspose(d, v)"
            " e = QuantizeLinear(t, half, z) y = DequantizeLinear(e, half, z)",
        ),
        (
            (1, 3, 6, 9),
            "c = QuantizeLinear(d, half, z) h = DequantizeLinear(c, half, z)"
            " y = AveragePool <kernel_shape = [2, 2], count_include_pad = 1, pads = [1, 1, 1, 1]>"
            " (h)",
        ),
        (
            (1, 1, 8, 3),
            "v = DequantizeLinear <axis = 1>(columns, by, none2) t = MatMul(d, v)"
            " m = MaxPool <kernel_shape = [3, 2]>(t) e = QuantizeLinear(m, half, z)"
            " y = DequantizeLinear(e, half, z)",
        ),
    ],
    ids=[
        "a Pad along the first axis",
        "int8 inputs that are joined",
        "uint8 weights of a ConvTranspose",
        "zero points of a ConvTranspose",
        "counted padding of an AveragePool",
        "pooled columns of a product",
    ],
)
def test_int8_inputs_of_the_model_are_counted_exactly(shape: tuple[int, ...], body: str) -> None:
    zero = 0 if "ConvTranspose" in body else -40
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (int8[{", ".join(map(str, shape))}] x) => (float[{", ".join("abce"[: len(shape)])}] y)
        <int8 z = {{{zero}}}, int8 none = {{0}}, float s = {{0.25}}, float half = {{0.5}},
         uint8 middle = {{128}},
         float ws = {{0.125}}, int64[8] first = {{0, 0, 0, 0, 1, 0, 0, 0}}>
        {{ d = DequantizeLinear(x, s, z) {body} }}"""
    )
    numbers = {
        "w": RANDOM.integers(-60, 61, (4, 3, 3, 3)).astype(np.int8),
        "u": RANDOM.integers(70, 190, (3, 4, 2, 2)).astype(np.uint8),
        "i": RANDOM.integers(-128, 128, (3, 2, 2, 2)).astype(np.int8),
        "by": np.array([0.125, 0.25], np.float32),
        "zeros": np.array([19, -23], np.int8),
        "none2": np.zeros(2, np.int8),
        "columns": RANDOM.integers(-60, 61, (3, 2)).astype(np.int8),
    }
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in numbers.items())
    feed = {"x": RANDOM.integers(-128, 128, shape).astype(np.int8)}
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    with ort.InferenceSession(model.SerializeToString(), options, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        np.testing.assert_array_equal(session.run(None, feed)[0], expected)


def test_minima_that_others_read_stay_infinite() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[n, 4, 8] x) => (float[n, 4, 1] y, float[n, 4, 1] w)
        <float s = {0.5}, uint8 z = {128}> {
          y = ReduceMin <axes = [-1]>(x) q = QuantizeLinear(y, s, z) w = DequantizeLinear(q, s, z)
        }"""
    )
    x = RANDOM.integers(-60, 61, (2, 4, 8)).astype(np.float32)
    x[1, 2, 3] = -np.inf
    (lowest, steps) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    with ort.InferenceSession(model.SerializeToString(), providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        answers = session.run(None, {"x": x})
    np.testing.assert_array_equal(answers[0], lowest)
    np.testing.assert_array_equal(answers[1], steps)


@pytest.mark.parametrize("batch", ["n", "1"])
@pytest.mark.parametrize(
    ("window", "pads"), [((1, 2), "1, 1, 1, 1"), ((7, 1), "0, 2, 0, 2"), ((1, 1), "0, 0, 0, 1")]
)
def test_pads_of_a_convtranspose_take_windows_away(
    window: tuple[int, int], pads: str, batch: str
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[{batch}, 64, 20, 28] x) => (float[n, c, h, w] y)
        <int8 z = {{0}}, float s = {{0.25}}, float ws = {{0.125}}, float big = {{8}}> {{
          q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
          v = DequantizeLinear(kernel, ws) t = ConvTranspose <pads = [{pads}]>(d, v)
          e = QuantizeLinear(t, big, z) y = DequantizeLinear(e, big, z)
        }}"""
    )
    kernel = RANDOM.integers(-127, 128, (64, 16, *window)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(kernel, "kernel"))
    feed = {"x": (RANDOM.integers(-120, 121, (1, 64, 20, 28)) / 4).astype(np.float32)}
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    with ort.InferenceSession(model.SerializeToString(), providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        np.testing.assert_array_equal(session.run(None, feed)[0], expected)


def test_quantised_factors_by_column_are_kept() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (int8[3, 24] x, float[7, 3] m) => (float[3, 3] y)
        <int8 z = {0}, int8 far = {76}, float s = {0.125}, float s1 = {4}, float s2 = {0.015625},
         float s3 = {0.0625}, float ws = {0.03125}>
        { a = com.microsoft.QLinearMul(x, s, z, row, s, z, s1, far)
          b = com.microsoft.QLinearLeakyRelu <alpha = 0.5>(a, s1, far, s1, z)
          c = QLinearMatMul(b, s2, z, w, ws, z, s3, z) d = DequantizeLinear(c, s3, z)
          y = MatMul(d, m) }"""
    )
    numbers = {
        "row": RANDOM.integers(-128, 128, 24).astype(np.int8),
        "w": RANDOM.integers(-60, 61, (24, 7)).astype(np.int8),
    }
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in numbers.items())
    feed = {
        "x": RANDOM.integers(-128, 128, (3, 24)).astype(np.int8),
        "m": RANDOM.integers(-8, 9, (7, 3)).astype(np.float32),
    }
    data, options = model.SerializeToString(), ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = onnxruntime.InferenceSession(data, plain).run(None, feed)
    with ort.InferenceSession(data, options, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        np.testing.assert_array_equal(session.run(None, feed)[0], expected)


def test_a_sum_that_others_read_keeps_its_scale_in_free_shapes() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (uint8[1, m, n] x) => (float[1, k, p] y, float[1, k, p] t)
        <uint8 z = {78}, uint8 none = {0}, int8 wz = {0}, float s = {128}, float ws = {0.015625},
         float s2 = {512}>
        { d = DequantizeLinear(x, s, z) v = DequantizeLinear(w, ws, wz)
          t = Conv <pads = [1, 1]>(d, v) q = QuantizeLinear(t, s2, none)
          y = DequantizeLinear(q, s2, none) }"""
    )
    weights = RANDOM.integers(-110, 111, (7, 5, 3)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    data = model.SerializeToString()
    feed = {"x": RANDOM.integers(0, 256, (1, 5, 16)).astype(np.uint8)}
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    expected = onnxruntime.InferenceSession(data, plain).run(None, feed)
    with ort.InferenceSession(data, options, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        for answer, right in zip(session.run(None, feed), expected, strict=True):
            np.testing.assert_array_equal(answer, right)


SHARED = {
    "summands": "t = MatMul (x, w) u = Add (t, b)",
    "factors": "t = Relu (x) u = Mul (b, t)",
    "quantised factors": "t = MatMul (x, w) k = DequantizeLinear (bytes, s, z) u = Mul (k, t)",
    "computed factors": "t = MatMul (x, w) k = DequantizeLinear (bytes, s, z)"
    " f = Reshape (k, row) u = Mul (t, f)",
    "a normalisation": "t = Relu (x) u = BatchNormalization (t, b, b, b, o)",
}


@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED)
def test_constants_are_kept_where_others_read_the_value_without_them(body: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n, 2] x) => (float[n, 2] y, float[n, 2] v)
        <float[2, 2] w = {{1.0, -2.0, 3.0, 0.5}}, float[2] b = {{2.0, -1.0}},
         int64[2] row = {{1, 2}}, float[2] o = {{1.0, 0.25}},
         uint8[2] bytes = {{153, 120}}, float s = {{0.0625}},
         uint8 z = {{128}}>
        {{ {body} q = QuantizeLinear (u, s, z) y = DequantizeLinear (q, s, z)
           v = Sigmoid (t) }}"""
    )
    data, options = model.SerializeToString(), ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    feed = {"x": RANDOM.integers(-40, 40, (5, 2)).astype(np.float32) / np.float32(32)}
    expected = onnxruntime.InferenceSession(data, plain).run(None, feed)
    with ort.InferenceSession(data, options, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        for answer, right in zip(session.run(None, feed), expected, strict=True):
            np.testing.assert_allclose(answer, right, atol=1e-5)


@pytest.mark.parametrize(
    ("opset", "pad"),
    [
        (10, "Pad <pads = [1, 0, 0, 0, 0, 0, 0, 0]>(d)"),
        (10, "Pad <pads = [0, 0, 1, 1, 0, 0, 1, 1]>(d)"),
        (18, "Pad(d, two, , axes)"),
    ],
)
def test_pads_of_every_form_are_filled_with_zero(opset: int, pad: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (uint8[1, 3, 6, 9] x) => (float[a, b, c, e] y)
        <uint8 z = {{90}}, float s = {{0.25}}, int64[2] two = {{1, 0}}, int64[1] axes = {{0}}>
        {{ d = DequantizeLinear(x, s, z) p = {pad} q = QuantizeLinear(p, s, z)
           y = DequantizeLinear(q, s, z) }}"""
    )
    if opset < 18:
        del model.graph.initializer[2:]
    data, options = model.SerializeToString(), ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    feed = {"x": RANDOM.integers(0, 256, (1, 3, 6, 9)).astype(np.uint8)}
    (expected,) = onnxruntime.InferenceSession(data).run(None, feed)
    with ort.InferenceSession(data, options, providers=[OPENVINO, "CPUExecutionProvider"]) as made:
        np.testing.assert_array_equal(made.run(None, feed)[0], expected)

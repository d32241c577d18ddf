"""Nodes that OpenVINO 2026.4.1 computes wrongly are run by the next execution provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

CASES = {
    "one channel repeated": (
        "Tile",
        "g (float[n, 1, h, w] x) => (y) <int64[4] r = {1, 2, 2, 1}> { y = Tile (x, r) }",
        (2, 1, 5, 5),
    ),
    "a vector of slopes as long as the channels": (
        "PRelu",
        "g (float[1, 3, 5, 3] x) => (y) <float[3] s = {0.1, 2.0, -1.0}> { y = PRelu (x, s) }",
        (1, 3, 5, 3),
    ),
    "a padded convolution of size 1 with strides": (
        "Conv",
        "g (float[1, 2, 7] x) => (y) <float[1, 2, 1] w = {1.0, -2.0}>"
        " { y = Conv <pads = [1, 1], strides = [2]> (x, w) }",
        (1, 2, 7),
    ),
    "a padded convolution of size 1 of one element": (
        "Conv",
        "g (float[1, 1, 1] x) => (y) <float[4, 1, 1] w = {1.0, -2.0, 0.5, 3.0}>"
        " { y = Conv <pads = [0, 1]> (x, w) }",
        (1, 1, 1),
    ),
    "slopes by channel behind a matrix product": (
        "PRelu",
        "g (float[2, 3, 4, 1] x) => (y) <float[1, 3] w = {1.0, -2.0, 3.0}, float[3, 1, 1] s = {0.5,"
        " -2.0, 4.0}, float k = {0.5}> { t = MatMul (x, w) u = Mul (t, k) y = PRelu (u, s) }",
        (2, 3, 4, 1),
    ),
    "slopes that are more than the values": (
        "PRelu",
        "g (float[2, 1, 3] x) => (y) <float[2, 1] s = {0.5, -2.0}> { y = PRelu (x, s) }",
        (2, 1, 3),
    ),
    "one column of one channel": (
        "Conv",
        "g (float[1, 1, 9, 5] x) => (y) <float[4, 1, 1, 5] w = {1.0, -2.0, 0.5, 3.0, 1.0, 2.0, 1.0,"
        " 0.5, 1.0, -1.0, 1.0, 1.0, -2.0, 0.5, 3.0, 2.0, 2.0, 1.0, -1.0, 0.5}>"
        " { t = Conv <strides = [1, 2]> (x, w) y = Abs (t) }",
        (1, 1, 9, 5),
    ),
    "one column of one channel, in a free shape": (
        "Conv",
        "g (float[1, 1, 9, n] x) => (y) <float[4, 1, 1, 3] w = {1.0, -2.0, 0.5, 3.0, 1.0, 2.0, 1.0,"
        " 0.5, 1.0, -1.0, 1.0, 1.0}> { t = Conv <strides = [1, 2]> (x, w) y = Abs (t) }",
        (1, 1, 9, 3),
    ),
    "padding as wide as the filter along one axis": (
        "Conv",
        "g (float[1, 2, 3, 1] x) => (y) <float[1, 2, 2, 1] w = {1.0, -2.0, 0.5, 3.0}, float s ="
        " {0.0625}, uint8 z = {128}> { q = QuantizeLinear (x, s, z)"
        " d = DequantizeLinear (q, s, z) y = Conv <pads = [0, 0, 0, 1]> (d, w) }",
        (1, 2, 3, 1),
    ),
    "a slice between both ends of what a slice left": (
        "Slice",
        "g (float[2, n] x) => (y) <int64[1] a = {-2}, int64[1] b = {5}, int64[1] c = {-1}, int64[1]"
        " d = {1}, int64[1] s = {2}> { t = Slice (x, a, b, d, s) u = Relu (t)"
        " y = Slice (u, c, d, d, s) }",
        (2, 6),
    ),
    "a slice back to a place from the end": (
        "Slice",
        "g (float[2, n] x) => (y) <int64[1] a = {0}, int64[1] b = {5}, int64[1] c = {4}, int64[1]"
        " d = {-3}, int64[1] o = {1}, int64[1] s = {-1}> { t = Slice (x, a, b, o)"
        " y = Slice (t, c, d, o, s) }",
        (2, 6),
    ),
}  # fmt: skip


def run(text: str, shape: tuple[int, ...]) -> tuple[list[Any], list[Any], set[tuple[str, str]]]:
    """What the session and the reference give, and operators with their execution providers."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {text}')
    feed = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(
        model.SerializeToString(), options, providers=["OpenVINOExecutionProvider"]
    ) as session:
        nodes = [n for partition in session.explain().partitions for n in partition.nodes]
        outputs = session.run(None, feed)
    return (
        outputs,
        list(ReferenceEvaluator(model).run(None, feed)),
        {(n.op_type, n.ep) for n in nodes},
    )


@pytest.mark.parametrize("name", CASES)
def test_it_is_left_to_the_next_provider(name: str) -> None:
    op_type, text, shape = CASES[name]
    outputs, expected, placed = run(text, shape)
    assert (op_type, "CPUExecutionProvider") in placed
    for output, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-6)


RIGHT = {
    "Slice": (
        "g (float[2, n] x) => (y, z, v) <int64[1] a = {-2}, int64[1] e = {9223372036854775807},"
        " int64[1] f = {-9223372036854775807}, int64[1] o = {1}, int64[1] m = {-1}, int64[1] b ="
        " {0}> { y = Slice (x, a, e, o) z = Slice (x, m, f, o, m) v = Slice (x, b, a, o) }",
        (2, 6),
    ),
    "Tile": (CASES["one channel repeated"][1].replace("n, 1, h, w", "2, 1, 5, 5"), (2, 1, 5, 5)),
    "PRelu": ("g (float[n, 2] x) => (y) <float[2] s = {0.1, 2.0}> { y = PRelu (x, s) }", (3, 2)),
    "Conv": (
        CASES["a padded convolution of size 1 with strides"][1].replace("pads = [1, 1], ", ""),
        (1, 2, 7),
    ),
}  # fmt: skip


@pytest.mark.parametrize("op_type", RIGHT)
def test_its_right_forms_stay(op_type: str) -> None:
    text, shape = RIGHT[op_type]
    outputs, expected, placed = run(text, shape)
    assert {ep for op, ep in placed if op == op_type} == {"OpenVINOExecutionProvider"}
    for output, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [0, 1])
def test_only_the_default_of_input_forget_is_computed_by_openvino(value: int) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[3, 1, 2] x) => (y) <float[1, 8, 2] w ='
        " {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6}> { y ="
        f" LSTM <hidden_size = 2, input_forget = {value}> (x, w, w) }}"
    )
    x = np.ones((3, 1, 2), np.float32)
    content = model.SerializeToString()
    ours = ort.InferenceSession(content, providers=["OpenVINOExecutionProvider"])
    assert (ours.explain().partitions[0].ep == "OpenVINOExecutionProvider") == (value == 0)
    theirs = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    expected = theirs.run(None, {"x": x})[0]
    np.testing.assert_allclose(ours.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scales", [(), (8,)], ids=["one scale", "scales by filter"])
def test_scales_by_filter_are_not_applied_to_channels(scales: tuple[int, ...]) -> None:
    """OpenVINO would, wherever there are as many filters as channels."""
    rng = np.random.default_rng(5)
    values = {
        "a": np.float32(0.02),
        "m": np.uint8(120),
        "w": rng.integers(-60, 60, (8, 8, 3, 3), dtype=np.int8),
        "b": (rng.random(scales) * 0.02 + 0.001).astype(np.float32),
        "n": np.zeros(scales, np.int8),
        "c": np.float32(0.31),
    }
    inputs = ["x", "a", "m", "w", "b", "n", "c", "m"]
    graph = helper.make_graph(
        [helper.make_node("QLinearConv", inputs, ["y"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 8, 9, 10])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString()
    x = rng.integers(0, 256, (1, 8, 9, 10), dtype=np.uint8)
    ours = ort.InferenceSession(model, providers=["OpenVINOExecutionProvider"])
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    difference = ours.run(None, {"x": x})[0].astype(np.int32) - theirs.run(None, {"x": x})[0]
    assert abs(difference).max() <= 1
    assert ours.explain().partitions[0].ep == "OpenVINOExecutionProvider"

"""`ieee_semantics=true`: no NaN and no infinity of onnxruntime's is lost, whatever is fused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from against_onnxruntime import onnxruntime_answers
from onnx import helper, numpy_helper

import ort_lite as ort
from eps.openvino.compile.ieee import _REPLACEMENTS, UNREPLACED

OPENVINO = "OpenVINOExecutionProvider"
ON = {"ieee_semantics": "true"}
CHANNELS = 16
DOCUMENT = Path(__file__).parents[2] / "docs" / "special_values.md"
MAXIMA = ("GlobalMaxPool", "MaxPool", "ReduceMax", "ReduceMin")
"""onnxruntime drops NaN from some of these, by its place among the others; we keep all."""

OPERATORS: dict[str, tuple[list[float], dict[str, Any]]] = {
    "Celu": ([], {}),
    "Clip": ([-1.0, 6.0], {}),
    "Exp": ([], {}),
    "Gelu": ([], {}),
    "GlobalMaxPool": ([], {}),
    "Greater": ([0.1], {}),
    "GreaterOrEqual": ([0.1], {}),
    "HardSigmoid": ([], {}),
    "LogSoftmax": ([], {"axis": 1}),
    "Max": ([0.1], {}),
    "MaxPool": ([], {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
    "Min": ([0.1], {}),
    "ReduceMax": ([], {"keepdims": 1}),
    "ReduceMin": ([], {"keepdims": 1}),
    "Relu": ([], {}),
    "Softmax": ([], {"axis": 1}),
}
"""Operator to further inputs and attributes."""


def model(op_type: str, before: str, rows: int | str) -> bytes:
    """The operator on x [rows, 16, 8, 8], behind what OpenVINO would fuse it with."""
    random = np.random.default_rng(2)
    weights = {
        "w": random.standard_normal((CHANNELS, CHANNELS, 1, 1)).astype(np.float32),
        "m": random.standard_normal((8, 8)).astype(np.float32),
        "s": np.float32(1.5),
        "axes": np.array([1], np.int64),
    }
    first = {
        "nothing": helper.make_node("Identity", ["x"], ["a"]),
        "convolution": helper.make_node("Conv", ["x", "w"], ["a"]),
        "product": helper.make_node("MatMul", ["x", "m"], ["a"]),
        "sum": helper.make_node("Add", ["x", "s"], ["a"]),
    }[before]
    further, attributes = OPERATORS[op_type]
    names = [f"k{i}" for i in range(len(further))]
    weights |= {name: np.float32(value) for name, value in zip(names, further, strict=True)}
    if op_type.startswith("Reduce"):
        names = ["axes"]
    compares = op_type.startswith("Greater")
    nodes = [
        first,
        helper.make_node(op_type, ["a", *names], ["o" if compares else "y"], **attributes),
    ]
    if compares:
        nodes.append(helper.make_node("Cast", ["o"], ["y"], to=onnx.TensorProto.FLOAT))
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "special",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, CHANNELS, 8, 8])],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items() if n in used],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made).SerializeToString()


def images(value: float) -> dict[str, Any]:
    """Numbers with `value` in a corner and in the middle."""
    x = np.random.default_rng(1).standard_normal((2, CHANNELS, 8, 8)).astype(np.float32)
    x[0, 0, 0, 0] = x[1, 7, 4, 3] = value
    return {"x": x}


@pytest.mark.parametrize("before", ["nothing", "convolution", "product", "sum"])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_special_values_come_out_as_onnxruntime_gives_them(op_type: str, before: str) -> None:
    data = model(op_type, before, "n" if before == "sum" else 2)
    with ort.InferenceSession(data, providers=[(OPENVINO, ON)]) as session:
        assert {part.ep for part in session.explain().partitions} == {OPENVINO}
        for value in (np.nan, np.inf, -np.inf):
            feed = images(value)
            (found,) = session.run(None, feed)
            (right,) = onnxruntime_answers(data, feed)
            if op_type in MAXIMA:
                assert np.all(np.isnan(found) | ~np.isnan(right))
                kept = ~np.isnan(found) & (right > np.finfo(np.float32).min)
                found, right = found[kept], right[kept]
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)


def test_the_default_is_fast_and_drops_nan() -> None:
    """If OpenVINO mends it, the option can go."""
    data = model("Relu", "convolution", 2)
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        (found,) = session.run(None, images(np.nan))
    assert not np.isnan(found).any()
    assert np.isnan(onnxruntime_answers(data, images(np.nan))[0]).any()


def test_every_replaced_operator_is_measured_and_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").split("## Operator by operator")[0]
    rows = {
        line.split("|")[1].strip(): line.split("|")[2].strip()
        for line in text.splitlines()
        if line.startswith("| `")
    }
    replaced = {
        name.strip(" `") for key in rows if rows[key] == "replaced" for name in key.split(",")
    }
    left = {name.strip(" `") for key in rows if rows[key] == "left" for name in key.split(",")}
    assert replaced == set(_REPLACEMENTS) == set(OPERATORS)
    assert left == UNREPLACED


@pytest.mark.parametrize("padding", [{"pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_UPPER"}, {}])
@pytest.mark.parametrize("value", [np.nan, np.inf, None, 0.5])
def test_padding_is_multiplied_by_weights_that_are_not_finite(
    value: float | None, padding: dict[str, Any]
) -> None:
    """0 times NaN or infinity is NaN; a weight that a run feeds (None) may be either."""
    weights = np.full((2, 1, 3, 3), 0.25, np.float32)
    weights[0, 0, 0, 0] = np.inf if value is None else value
    shapes = {"x": [1, 1, 4, 4], "w": [2, 1, 3, 3]}
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
        if name == "x" or value is None
    ]
    constants = [] if value is None else [numpy_helper.from_array(weights, "w")]
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], **padding)
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "padded", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    data = onnx.shape_inference.infer_shapes(made).SerializeToString()
    feed = {"x": np.ones((1, 1, 4, 4), np.float32)}
    if value is None:
        feed["w"] = weights
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(data, options, providers=[(OPENVINO, ON)]) as session:
        (found,) = session.run(None, feed)
        is_left = bool(padding) and value != 0.5
        assert [part.ep == OPENVINO for part in session.explain().partitions] == [not is_left]
    np.testing.assert_allclose(found, onnxruntime_answers(data, feed)[0], rtol=1e-5)


@pytest.mark.parametrize("op_type", ["ThresholdedRelu", "Shrink"])
def test_what_is_not_replaced_goes_to_the_next_provider(op_type: str) -> None:
    node = helper.make_node(op_type, ["x"], ["y"])
    graph = helper.make_graph(
        [node],
        "left",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, CHANNELS, 8, 8])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, CHANNELS, 8, 8])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    data = made.SerializeToString()
    with ort.InferenceSession(data, providers=[(OPENVINO, ON)]) as session:
        (part,) = session.explain().partitions
        assert part.ep == "CPUExecutionProvider"
        assert "loses NaN" in part.nodes[0].refusals[OPENVINO]
        (found,) = session.run(None, images(np.nan))
    np.testing.assert_array_equal(found, onnxruntime_answers(data, images(np.nan))[0])


def compiled(folder: Path, options: dict[str, str]) -> Path:
    path = folder / "model_ctx.onnx"
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(path))
    data = model("Relu", "convolution", 2)
    ort.InferenceSession(data, config, providers=[(OPENVINO, options)]).close()
    return path


def test_a_context_with_the_option_keeps_nan_in_every_session(tmp_path: Path) -> None:
    path = compiled(tmp_path, ON)
    for options in (ON, {}):
        with ort.InferenceSession(path, providers=[(OPENVINO, options)]) as session:
            assert np.isnan(session.run(None, images(np.nan))[0]).any()


def test_a_context_without_the_option_is_refused_where_the_session_has_it(tmp_path: Path) -> None:
    path = compiled(tmp_path, {})
    with pytest.raises(ort.InvalidGraph, match="ieee_semantics=true, and the payload") as caught:
        ort.InferenceSession(path, providers=[(OPENVINO, ON)])
    assert caught.value.reason == "options"
    assert "compile the original ONNX model again" in caught.value.hint  # from memory: no name
    assert "with provider option ieee_semantics=true" in caught.value.hint
    (verdict,) = ort.check_compatibility(path, providers=[(OPENVINO, ON)])
    assert verdict.reason == "options"
    ort.InferenceSession(path, providers=[OPENVINO]).close()


@pytest.mark.parametrize(
    "options", [{"ieee_semantics": "yes"}, {"ieee_semantics": "true", "device_type": "GPU"}]
)
def test_a_wrong_value_is_refused(options: dict[str, str]) -> None:
    data = model("Relu", "nothing", 2)
    with pytest.raises(ort.InvalidArgument, match="ieee_semantics is"):
        ort.InferenceSession(data, providers=[(OPENVINO, options)])

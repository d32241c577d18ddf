"""Convolutions that OpenVINO computes slowly get another form, and keep their answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
NARROW = "Conv x1 over inputs of width 1 computed without that axis"
PADDED = "Conv x1 of one channel computed after its padding"


def convolution(
    x: tuple[object, ...] = (1, 64, 64, 1),
    w: tuple[int, ...] = (128, 64, 5, 1),
    *,
    bias: bool = True,
    **attributes: Any,
) -> onnx.ModelProto:
    """Relu of a Conv of x."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(w).astype(np.float32), "w")]
    if bias:
        weights.append(numpy_helper.from_array(rng.random(w[0], np.float32), "b"))
    inputs = ["x", *(value.name for value in weights)]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", inputs, ["c"], **attributes),
            helper.make_node("Relu", ["c"], ["y"]),
        ],
        "narrow",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def check(proto: onnx.ModelProto, shape: tuple[int, ...]) -> list[str]:
    """Notes about rewritings, once the answer is onnx.reference's."""
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
    with ort.InferenceSession(proto.SerializeToString(), providers=[OPENVINO]) as session:
        (y,) = session.run(None, {"x": x})
        (part,) = session.explain().partitions
    assert part.ep == OPENVINO
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    return list(part.notes)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": [3, 0, 1, 0]},
        {"strides": [2, 1]},
        {"strides": [2, 3], "pads": [2, 0, 2, 0]},
        {"dilations": [3, 2], "kernel_shape": [5, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 1]},
        {"auto_pad": "VALID"},
    ],
    ids=str,
)
def test_answers_are_those_of_the_specification(attributes: dict[str, Any]) -> None:
    assert NARROW in check(convolution(**attributes), (1, 64, 64, 1))


def test_the_height_and_the_batch_may_be_free() -> None:
    proto = convolution(("n", 128, "h", 1), (96, 128, 5, 1), bias=False)
    assert NARROW in check(proto, (2, 128, 40, 1))


def quantised(op: str, scales: tuple[int, ...], **axis: int) -> onnx.ModelProto:
    """A Conv between DequantizeLinear, or a QLinearConv, of x quantised to 8 bits."""
    rng = np.random.default_rng(3)
    values = {
        "w": rng.integers(-127, 128, (128, 64, 5, 1), dtype=np.int8),
        "ws": (rng.random(scales) * 0.01 + 0.001).astype(np.float32),
        "wz": np.zeros(scales, np.int8),
        "xs": np.float32(0.0213),
        "xz": np.uint8(120),
        "ys": np.float32(0.31),
    }
    nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"])]
    if op == "Conv":
        nodes += [
            helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["f"], **axis),
            helper.make_node("Conv", ["d", "f"], ["y"], pads=[2, 0, 1, 0]),
        ]
    else:
        inputs = ["q", "xs", "xz", "w", "ws", "wz", "ys", "xz"]
        nodes += [
            helper.make_node("QLinearConv", inputs, ["c"], pads=[2, 0, 1, 0]),
            helper.make_node("DequantizeLinear", ["c", "ys", "xz"], ["y"]),
        ]
    graph = helper.make_graph(
        nodes,
        "narrow",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 64, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize(
    "proto",
    [
        quantised("QLinearConv", ()),
        quantised("Conv", ()),
        quantised("Conv", (128,), axis=0),
    ],
    ids=["QLinearConv", "QDQ", "QDQ by channel"],
)
def test_quantised_ones_are_computed_without_the_axis_too(proto: onnx.ModelProto) -> None:
    assert NARROW in check(proto, (1, 64, 64, 1))


def test_scales_along_another_axis_stay_with_their_filters() -> None:
    assert NARROW not in check(quantised("Conv", (64,), axis=1), (1, 64, 64, 1))


@pytest.mark.parametrize(
    ("proto", "shape"),
    [
        (convolution((1, 64, 64, 2)), (1, 64, 64, 2)),
        (convolution((1, 64, 64, "w")), (1, 64, 64, 1)),
        (convolution(w=(128, 64, 5, 3), pads=[0, 1, 0, 1]), (1, 64, 64, 1)),
        (convolution(strides=[1, 2], pads=[0, 1, 0, 0]), (1, 64, 64, 1)),
        (convolution((1, 64, 64, 1), (128, 8, 5, 1), group=8), (1, 64, 64, 1)),
        (convolution((1, 4, 8, 1), (4, 4, 3, 1)), (1, 4, 8, 1)),
    ],
    ids=["width 2", "free width", "wide filter", "padding alone", "groups", "small"],
)
def test_others_stay_as_they_are(proto: onnx.ModelProto, shape: tuple[int, ...]) -> None:
    assert NARROW not in check(proto, shape)


@pytest.mark.parametrize("length", [4000, "n"], ids=["fixed", "free"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [200, 200]},
        {"pads": [17, 0], "strides": [160]},
        {"pads": [0, 300], "strides": [441], "kernel_shape": [80], "auto_pad": "NOTSET"},
        {"pads": [40, 40], "dilations": [2]},
    ],
    ids=str,
)
def test_spectrograms_are_those_of_the_specification(
    length: int | str, attributes: dict[str, Any]
) -> None:
    proto = convolution(("b", 1, length), (24, 1, 80), **attributes)
    assert PADDED in check(proto, (2, 1, 4000))


@pytest.mark.parametrize(
    ("proto", "shape"),
    [
        (convolution((1, 1, 400), (8, 1, 80)), (1, 1, 400)),
        (convolution((1, 2, 400), (8, 2, 80), pads=[40, 40]), (1, 2, 400)),
        (convolution((1, 1, 400), (8, 1, 5), pads=[2, 2]), (1, 1, 400)),
        (convolution((1, 1, 400), (8, 1, 80), auto_pad="SAME_UPPER"), (1, 1, 400)),
    ],
    ids=["no padding", "two channels", "short filters", "automatic padding"],
)
def test_other_signals_stay_as_they_are(proto: onnx.ModelProto, shape: tuple[int, ...]) -> None:
    assert PADDED not in check(proto, shape)

"""Operators that OpenVINO converts wrongly at some opsets, or for free sizes, as onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"


def random_values(*shape: int) -> Array:
    return np.random.default_rng(0).random(shape, dtype=np.float32)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str],
    constants: Mapping[str, Array],
    opset: int = 13,
    kind: int = onnx.TensorProto.FLOAT,
) -> bytes:
    """A model of one input, x, and one output, y."""
    graph = helper.make_graph(
        nodes,
        "older",
        [helper.make_tensor_value_info("x", kind, shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    return bytes(helper.make_model(graph, ir_version=8, opset_imports=imports).SerializeToString())


def open_on_openvino(source: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return ort.InferenceSession(source, options, [OPENVINO])


def owner(
    nodes: Sequence[onnx.NodeProto],
    x: Array,
    shape: Sequence[int | str],
    constants: Mapping[str, Array] | None = None,
    opset: int = 13,
) -> str:
    """Compare the output y with onnxruntime's; the EPs that computed it."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    source = model_of(nodes, shape, constants or {}, opset, kind)
    (expected,) = onnxruntime.InferenceSession(source, providers=[CPU]).run(None, {"x": x})
    with open_on_openvino(source) as session:
        (actual,) = session.run(None, {"x": x})
        counts = session.explain().node_counts()
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    return " ".join(counts)


@pytest.mark.parametrize("opset", range(7, 15))
@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3, -1, -3])
@pytest.mark.parametrize("shape", [["a", "b", "c", "d"], [2, 3, 4, 5], [2, 3, "c", 5]], ids=str)
def test_softmax_is_over_the_axes_of_its_opset(
    shape: Sequence[int | str], axis: int | None, opset: int
) -> None:
    if axis is not None and axis < 0 and opset < 11:
        pytest.skip("no negative axes before opset 11")
    attributes = {} if axis is None else {"axis": axis}
    node = helper.make_node("Softmax", ["x"], ["y"], **attributes)
    assert owner([node], random_values(2, 3, 4, 5), shape, opset=opset) == OPENVINO


def test_softmax_over_axes_of_one_element_stays_as_it_is() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    assert owner([node], random_values(2, 5, 1, 1), ["n", 5, 1, 1], opset=11) == OPENVINO


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("shape", [["n", 4, "h", "w"], [1, 4, 8, 7]], ids=["free", "known"])
@pytest.mark.parametrize(
    ("kernel", "attributes"),
    [
        ((3, 3), {"strides": [2, 2]}),
        ((4, 3), {"strides": [2, 1]}),
        ((4, 4), {"strides": [3, 3], "kernel_shape": [4, 4]}),
        ((3, 2), {"strides": [2, 1], "dilations": [2, 3]}),
        ((2, 2), {}),
        ((1, 1), {}),
    ],
    ids=str,
)
def test_transposed_convolutions_are_as_large_as_their_strides_say(
    kernel: tuple[int, int],
    attributes: dict[str, list[int]],
    shape: Sequence[int | str],
    mode: str,
) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], auto_pad=mode, **attributes)
    weights = {"w": random_values(4, 3, *kernel)}
    assert owner([node], random_values(1, 4, 8, 7), shape, weights) == OPENVINO


@pytest.mark.parametrize("extra", [0, 1], ids=["", "padded"])
def test_padded_outputs_of_free_sizes_are_right(extra: int) -> None:
    """Of known sizes ONNX's shape inference expects more than onnxruntime computes."""
    node = helper.make_node(
        "ConvTranspose",
        ["x", "w"],
        ["y"],
        auto_pad="SAME_LOWER",
        strides=[2, 2],
        output_padding=[extra, 0],
    )
    weights = {"w": random_values(4, 3, 3, 3)}
    assert owner([node], random_values(1, 4, 8, 7), ["n", 4, "h", "w"], weights) == OPENVINO


def test_a_stride_beyond_the_kernel_is_left_where_sizes_are_free() -> None:
    """onnxruntime's output is one shorter than ConvTranspose-11 has it, so nothing is compared."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], auto_pad="SAME_UPPER", strides=[3])
    source = model_of([node], ["n", 4, "t"], {"w": random_values(4, 3, 2)})
    with open_on_openvino(source) as session:
        assert list(session.explain().node_counts()) == [CPU]
        (actual,) = session.run(None, {"x": random_values(1, 4, 8)})
    assert actual.shape == (1, 3, 24)


@pytest.mark.parametrize("opset", [9, 10, 11, 13])
def test_negative_indices_of_one_hot_count_from_the_end_since_opset_11(opset: int) -> None:
    constants = {"depth": np.array(3), "values": np.array([0, 1], np.float32)}
    node = helper.make_node("OneHot", ["x", "depth", "values"], ["y"])
    expected = OPENVINO if opset >= 11 else CPU
    assert owner([node], np.array([[0, 2], [-1, 1]]), ["n", 2], constants, opset) == expected


@pytest.mark.parametrize("last", [3, 5], ids=["as many as channels", "more than channels"])
@pytest.mark.parametrize("channels", ["c", 3], ids=["free", "known"])
def test_scales_of_channels_are_those_of_channels(channels: int | str, last: int) -> None:
    constants = {
        "scale": np.array([0.01, 0.02, 0.03], np.float32),
        "zero": np.array([100, 128, 130], np.uint8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], axis=1),
    ]
    shape = ["n", channels, "h", "w"]
    assert owner(nodes, random_values(2, 3, 4, last), shape, constants) == OPENVINO


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int32])
@pytest.mark.parametrize("shape", [["n", 2, "h", "w"], [1, 2, 8, 7]], ids=["free", "known"])
def test_integers_are_cut_off_between_pixels(
    shape: Sequence[int | str], kind: type, opset: int
) -> None:
    """Weights are eighths here: others may be rounded to a whole number or just not."""
    x = (random_values(1, 2, 8, 7) * 200 - 100).astype(np.int32).astype(kind)
    node = helper.make_node("Resize", ["x", "none", "scales"], ["y"], mode="linear")
    constants = {"none": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 4], np.float32)}
    assert owner([node], x, shape, constants, opset) == OPENVINO


@pytest.mark.parametrize("op_type", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_of_integers_are_left(op_type: str) -> None:
    node = helper.make_node(op_type, ["x"], ["y"], axes=[1])
    x = np.array([[1, 2, 3], [1, 1, 1]], np.int32)
    assert owner([node], x, ["n", 3], opset=11) == CPU

"""8-bit convolutions of long windows and in groups, which OpenVINO gets wrong on CPUs with AMX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import ort_lite as ort
from eps.openvino.compile import byte_convolutions

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENVINO = "OpenVINOExecutionProvider"
RANDOM = np.random.default_rng(41)
SHAPES = [
    # channels, groups, filters, window, strides
    (16, 1, 16, (1, 8), 1),
    (16, 1, 8, (3, 12), 1),
    (8, 1, 64, (1, 16), 1),
    (12, 1, 20, (9, 1), 1),
    (64, 4, 64, (16,), 1),
    (4, 2, 128, (3, 3), 2),
    (48, 2, 128, (7, 7), 2),
    (40, 2, 64, (3, 3), 1),
    (12, 12, 12, (3, 3), 1),
    (12, 12, 24, (3, 3), 1),
    (16, 1, 16, (3, 3), 1),
]


def make_model(
    shape: tuple[int, int, int, tuple[int, ...], int], form: str, kind: Any, batch: str | int
) -> tuple[bytes, dict[str, Any]]:
    """A convolution whose result is quantised by powers of two, so that no engine has to round."""
    channels, groups, filters, window, stride = shape
    low = 128 if kind == np.uint8 else 0
    sizes = [20] * len(window)
    weights = RANDOM.integers(-9, 10, (filters, channels // groups, *window)).astype(np.int8)
    numbers = {
        "s": np.float32(0.5),
        "z": kind(low - 6),
        "w": weights,
        "ws": np.float32(0.25),
        "wz": np.int8(0),
        "so": np.float32(16),
        "zo": kind(low + 2),
    }
    attributes = {"group": groups, "strides": [stride] * len(window)}
    if form == "QLinearConv":
        names = ["x", "s", "z", "w", "ws", "wz", "so", "zo"]
        nodes = [
            helper.make_node(form, names, ["q"], **attributes),
            helper.make_node("DequantizeLinear", ["q", "so", "zo"], ["y"]),
        ]
        element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        feed = RANDOM.integers(low - 120, low + 120, (1, channels, *sizes)).astype(kind)
    else:
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]),
            helper.make_node("DequantizeLinear", ["a", "s", "z"], ["b"]),
            helper.make_node("Relu", ["b"], ["r"]),
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["f"]),
            helper.make_node("Conv", ["r", "f"], ["c"], **attributes),
            helper.make_node("QuantizeLinear", ["c", "so", "zo"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "so", "zo"], ["y"]),
        ]
        element = onnx.TensorProto.FLOAT
        feed = (RANDOM.integers(-120, 120, (1, channels, *sizes)) / 2).astype(np.float32)
    dims = [batch, channels, *sizes]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", element, dims)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), {"x": feed}


def run_both(model: bytes, feed: dict[str, Any]) -> tuple[Any, Any]:
    """Answers of onnxruntime and of OpenVINO, in steps of the result."""
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = onnxruntime.InferenceSession(model, plain).run(None, feed)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as session:
        assert [part.ep for part in session.explain().partitions] == [OPENVINO]
        session.disable_fallback()
        (answer,) = session.run(None, feed)
    return expected / 16, answer / 16


@pytest.fixture
def _fresh_trial() -> Iterator[None]:
    kept = byte_convolutions._is_wrong.copy()
    yield
    byte_convolutions._is_wrong[:] = kept


@pytest.mark.parametrize("batch", ["n", 1])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("form", ["Conv", "QLinearConv"])
@pytest.mark.parametrize("shape", SHAPES)
def test_convolutions_of_bytes_are_those_of_onnxruntime(
    shape: tuple[int, int, int, tuple[int, ...], int], form: str, kind: Any, batch: str | int
) -> None:
    expected, answer = run_both(*make_model(shape, form, kind, batch))
    steps = abs(answer - expected)
    assert steps.max() <= 1
    assert np.count_nonzero(steps) <= 0.04 * steps.size  # in the middle between two steps


@pytest.mark.usefixtures("_fresh_trial")
@pytest.mark.parametrize("form", ["Conv", "QLinearConv"])
def test_they_are_right_in_float32_wherever_the_trial_fails(form: str) -> None:
    byte_convolutions._is_wrong[:] = [True]
    expected, answer = run_both(*make_model(SHAPES[0], form, np.uint8, "n"))
    assert abs(answer - expected).max() <= 1


@pytest.mark.usefixtures("_fresh_trial")
def test_the_trial_runs_only_for_such_convolutions() -> None:
    byte_convolutions._is_wrong.clear()
    run_both(*make_model(SHAPES[-1], "Conv", np.uint8, 1))
    assert byte_convolutions._is_wrong == []
    run_both(*make_model(SHAPES[0], "Conv", np.uint8, 1))
    assert len(byte_convolutions._is_wrong) == 1

"""STFT of frames whose length is no power of two, which onnxruntime transforms with rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

Array = np.ndarray[Any, np.dtype[Any]]

TIME = np.arange(100)
SIGNALS = {
    "constant": np.full(100, 0.37),
    "cosine": np.cos(TIME * 2 * np.pi / 5),
    "ramp": TIME * 0.01,
    "noise": np.random.default_rng(0).standard_normal(100),
}
SIZE, STEP = 20, 5
EPS = np.finfo(np.float32).eps


def transform_session(module: Any) -> Any:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 100, 1])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    constants = [
        numpy_helper.from_array(np.int64(STEP), "step"),
        numpy_helper.from_array(np.ones(SIZE, np.float32), "window"),
    ]
    node = helper.make_node("STFT", ["x", "step", "window"], ["y"])
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return module.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def transformed(module: Any, signal: Array) -> Array:
    result: Array = transform_session(module).run(None, {"x": signal[None, :, None]})[0]
    return result


@pytest.mark.parametrize("name", SIGNALS)
def test_bins_whose_samples_cancel_are_rounded_as_in_onnxruntime(name: str) -> None:
    """Kokoro divides a bin's imaginary part by its real one: 0 / 0 made all of its audio NaN."""
    signal = SIGNALS[name].astype(np.float32)
    found, peer = transformed(ort, signal), transformed(onnxruntime, signal)
    both_zero = (found == 0).all(-1) & ~(peer == 0).all(-1)
    assert not both_zero.any()
    frames = sliding_window_view(signal.astype(np.float64), SIZE)[::STEP]
    exact = np.fft.rfft(frames)
    # Each part is a sum of SIZE products, each factor rounded once.
    bound = (SIZE + 1) * EPS * np.abs(frames).sum(-1, keepdims=True)
    assert (np.abs(found[0, ..., 0] - exact.real) <= bound).all()
    assert (np.abs(found[0, ..., 1] - exact.imag) <= bound).all()


def test_the_shape_without_the_attribute_onesided_is_that_of_its_default() -> None:
    """onnx infers the shape of `onesided` 0 there, and each run warned of another shape."""
    shape = transform_session(ort).get_outputs()[0].shape
    assert shape == transform_session(onnxruntime).get_outputs()[0].shape == [1, 17, 11, 2]

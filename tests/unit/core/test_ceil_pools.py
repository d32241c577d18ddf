"""Pools with ceil_mode have the shapes that onnxruntime computes, at every opset."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper

import ort_lite as ort

PROVIDERS = ("CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider")
WINDOWS = [(5, 2, 2, (1, 1)), (32, 1, 2, (0, 0)), (2, 1, 2, (0, 0)), (7, 3, 4, (0, 2))]
"""Size, kernel, stride and pads where a last window would start behind the input."""


def pool(op: str, opset: int, size: object, *window: Any, **attributes: Any) -> ModelProto:
    """Relu of a pool of x [1, 2, size], doubled along its last axis."""
    kernel, stride, pads = window
    attributes |= {"kernel_shape": [kernel], "strides": [stride], "pads": pads, "ceil_mode": 1}
    graph = helper.make_graph(
        [
            helper.make_node(op, ["x"], ["p"], **attributes),
            helper.make_node("Relu", ["p"], ["r"]),
            helper.make_node("Concat", ["r", "r"], ["y"], axis=2),
        ],
        "pool",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, None])],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("op", "opset"), [("MaxPool", 12), ("AveragePool", 11), ("AveragePool", 19), ("LpPool", 18)]
)
def test_windows_behind_the_input_do_not_count(op: str, opset: int, provider: str) -> None:
    for size, *window in WINDOWS:
        model = pool(op, opset, size, *window).SerializeToString()
        x = np.random.default_rng(0).standard_normal((1, 2, size)).astype(np.float32)
        peer = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        (expected,) = peer.run(None, {"x": x})
        with ort.InferenceSession(model, providers=[provider]) as session:
            (output,) = session.get_outputs()
            (y,) = session.run(None, {"x": x})
        assert output.shape == list(expected.shape), (size, window)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_every_length_is_onnxruntimes() -> None:
    for size, kernel, stride, before, after in product(
        (5, 8, 9), (2, 3), (1, 2, 3), (0, 1), (0, 1)
    ):
        model = pool("MaxPool", 13, size, kernel, stride, (before, after)).SerializeToString()
        peer = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        (expected,) = peer.run(None, {"x": np.ones((1, 2, size), np.float32)})
        with ort.InferenceSession(model, providers=["CPUExecutionProvider"]) as session:
            (output,) = session.get_outputs()
        assert output.shape == list(expected.shape)


def test_free_lengths_stay_free() -> None:
    model = pool("MaxPool", 13, "n", 2, 2, (1, 1)).SerializeToString()
    with ort.InferenceSession(model, providers=["CPUExecutionProvider"]) as session:
        (output,) = session.get_outputs()
        (y,) = session.run(None, {"x": np.ones((1, 2, 5), np.float32)})
    assert output.shape[:2] == [1, 2]
    assert not isinstance(output.shape[2], int)
    assert y.shape == (1, 2, 6)

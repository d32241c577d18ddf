"""Few long filters over one channel, computed by blocks, against the definition in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort


def run_conv(x: Any, w: Any, **attributes: Any) -> Any:
    """Conv with constant weights on the CPU EP."""
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], **attributes)],
        "blocks",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    with ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]) as own:
        (y,) = own.run(None, {"x": x})
    return y


def expect(x: Any, w: Any, pads: tuple[int, int], step: int) -> Any:
    """Convolution of the last axis, from its definition."""
    flat = np.pad(x.reshape(len(x), -1).astype(np.float64), ((0, 0), pads))
    taps = w.reshape(len(w), -1).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(flat, taps.shape[1], 1)[:, ::step]
    return np.einsum("bnk,mk->bmn", windows, taps)


CASES = [
    (1, 1, 28, 2, (13, 15), 4000),
    (2, 2, 23, 3, (0, 13), 4001),
    (1, 2, 80, 6, (37, 43), 16000),
    (3, 1, 16, 1, (0, 0), 1024),
    (1, 1, 54, 4, (0, 0), 16000),
]


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize(("batch", "filters", "taps", "step", "pads", "length"), CASES)
def test_answers_are_those_of_the_definition(
    batch: int, filters: int, taps: int, step: int, pads: tuple[int, int], length: int, rank: int
) -> None:
    random = np.random.default_rng(length)
    ones = (1,) * (rank - 1)
    x = random.standard_normal((batch, 1, *ones, length)).astype(np.float32)
    w = random.standard_normal((filters, 1, *ones, taps)).astype(np.float32)
    padding = [*[0] * (rank - 1), pads[0], *[0] * (rank - 1), pads[1]]
    y = run_conv(x, w, pads=padding, strides=[*ones, step])
    expected = expect(x, w, pads, step)
    assert y.shape == (batch, filters, *ones, expected.shape[-1])
    np.testing.assert_allclose(y.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_only_windows_with_an_infinity_or_nan_have_one(value: float) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((1, 1, 4000)).astype(np.float32)
    x[0, 0, 2000] = value
    w = random.random((1, 1, 28), np.float32) + 1
    y = run_conv(x, w, strides=[2])[0, 0]
    with np.errstate(all="ignore"):
        expected = expect(x, w, (0, 0), 2)[0, 0]
    assert np.count_nonzero(~np.isfinite(y)) == 14
    np.testing.assert_allclose(y, expected, rtol=1e-4)


def test_filters_that_are_an_input_give_the_same_answer() -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((1, 1, 3000)).astype(np.float32)
    w = random.standard_normal((2, 1, 40)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[3])
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in
             (("x", x), ("w", w))]  # fmt: skip
    graph = helper.make_graph(
        [node], "free", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    with ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]) as own:
        (y,) = own.run(None, {"x": x, "w": w})
    np.testing.assert_allclose(y, run_conv(x, w, strides=[3]), rtol=1e-4, atol=1e-4)

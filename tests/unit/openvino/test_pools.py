"""Pools with ceil_mode on OpenVINO have onnxruntime's numbers, for free dimensions as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
RNG = np.random.default_rng(22)


def model(operator: str, size: int | str, **attributes: Any) -> bytes:
    node = helper.make_node(operator, ["x"], ["y"], ceil_mode=1, **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, size, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [x], [y])
    opsets = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def start(data: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return ort.InferenceSession(data, options, providers=[OPENVINO])


def provider_of(session: ort.InferenceSession) -> str:
    (part,) = session.explain().partitions
    return part.ep


def check(session: ort.InferenceSession, data: bytes, size: int) -> None:
    x = RNG.standard_normal((1, 2, size, 3), dtype=np.float32) - 2
    (right,) = onnxruntime.InferenceSession(data).run(None, {"x": x})
    (result,) = session.run(None, {"x": x})
    assert result.shape == right.shape
    np.testing.assert_allclose(result, right, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    ("kernel", "stride", "before", "after"),
    [(2, 2, 0, 0), (3, 2, 0, 0), (3, 2, 1, 1), (3, 3, 1, 0), (4, 2, 1, 2), (2, 1, 1, 1)],
)
def test_a_free_dimension_is_rounded_up(
    operator: str, kernel: int, stride: int, before: int, after: int
) -> None:
    data = model(
        operator,
        "h",
        kernel_shape=[kernel, 1],
        strides=[stride, 1],
        pads=[before, 0, after, 0],
    )
    with start(data) as session:
        session.disable_fallback()
        assert provider_of(session) == OPENVINO
        smallest = max(1, kernel - before - after - stride + 1)
        for size in (7, smallest, 5, 6, 11, smallest, 8):
            check(session, data, size)


def test_a_mean_without_padding_counts_elements_of_the_input_alone() -> None:
    data = model("AveragePool", "h", kernel_shape=[2, 1], strides=[2, 1], count_include_pad=1)
    with start(data) as session:
        session.disable_fallback()
        assert provider_of(session) == OPENVINO
        for size in (1, 5, 4, 7):
            check(session, data, size)


def test_dilated_windows_of_a_free_dimension_are_rounded_up() -> None:
    attributes = {"kernel_shape": [3, 1], "dilations": [2, 1], "strides": [3, 1]}
    data = model("MaxPool", "h", pads=[1, 0, 1, 0], **attributes)
    with start(data) as session:
        session.disable_fallback()
        assert provider_of(session) == OPENVINO
        for size in (5, 9, 3, 7, 10):
            check(session, data, size)


@pytest.mark.parametrize("size", ["h", 3, 5, 7])
def test_a_mean_that_counts_padding_is_not_openvinos(size: int | str) -> None:
    """OpenVINO 2026.4.1 counts elements behind the padding, too."""
    attributes = {"kernel_shape": [3, 1], "strides": [2, 1], "pads": [0, 0, 1, 0]}
    data = model("AveragePool", size, count_include_pad=1, **attributes)
    with start(data) as session:
        assert provider_of(session) == CPU
        check(session, data, size if isinstance(size, int) else 5)


def test_a_mean_whose_windows_end_in_the_padding_is_openvinos() -> None:
    attributes = {"kernel_shape": [3, 1], "strides": [2, 1], "pads": [0, 0, 1, 0]}
    data = model("AveragePool", 6, count_include_pad=1, **attributes)
    with start(data) as session:
        assert provider_of(session) == OPENVINO
        check(session, data, 6)


def test_windows_that_may_start_in_the_padding_are_not_openvinos() -> None:
    data = model("MaxPool", "h", kernel_shape=[2, 1], strides=[2, 1], pads=[0, 0, 1, 0])
    with start(data) as session:
        assert provider_of(session) == CPU
        check(session, data, 6)

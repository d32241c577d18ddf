"""Quantisation to 16 bits on OpenVINO: OpenVINO alone leaves it out."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import ort_lite

RANDOM = np.random.default_rng(16)
BEFORE = {"": "x", "Mul": "m"}
AFTER = ("DequantizeLinear", "", "Relu")
Array = np.ndarray[Any, np.dtype[Any]]


def model(
    kind: str, scale: Array, zero: Array | None, before: str, after: str, *, free: bool = False,
    axis: int = 1,
) -> bytes:  # fmt: skip
    """x, maybe a product, QuantizeLinear, and what reads it."""
    shape: list[int | str] = ["a", "b", "c"] if free else [2, 3, 40]
    inputs = [helper.make_tensor_value_info("x", 1, shape)]
    constants = [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(np.float32(0.7), "k")]
    attributes: dict[str, Any] = {"axis": axis}
    names = ["s"]
    if zero is None:
        attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    else:
        constants.append(numpy_helper.from_array(zero.astype(kind), "z"))
        names.append("z")
    nodes = [helper.make_node("Mul", ["x", "k"], ["m"])] if before else []
    nodes.append(helper.make_node("QuantizeLinear", [BEFORE[before], *names], ["q"], **attributes))
    outputs = ["q"]
    if after:
        nodes.append(helper.make_node("DequantizeLinear", ["q", *names], ["y"], axis=axis))
        outputs = ["y"]
    if after == "Relu":
        nodes.append(helper.make_node("Relu", ["y"], ["r"]))
        outputs = ["q", "r"]
    graph = helper.make_graph(
        nodes, "g", inputs, [helper.make_empty_tensor_value_info(n) for n in outputs], constants
    )
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    data: bytes = whole.SerializeToString()
    return data


def compare(data: bytes) -> ort_lite.InferenceSession:
    """All nodes on OpenVINO, with onnxruntime's steps."""
    x = (RANDOM.standard_normal((2, 3, 40)) * 20000).astype(np.float32)
    options = ort_lite.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    right = onnxruntime.InferenceSession(data, plain, providers=["CPUExecutionProvider"])
    session = ort_lite.InferenceSession(
        data, options, providers=["OpenVINOExecutionProvider", "CPUExecutionProvider"]
    )
    for mine, theirs in zip(session.run(None, {"x": x}), right.run(None, {"x": x}), strict=True):
        assert mine.dtype == theirs.dtype
        far = 0.02 if mine.dtype == np.float32 else 0  # OpenVINO scales the zero point by itself
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=far)
    assert "CPUExecutionProvider" not in str(session.explain())
    return session


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(("kind", "zero"), [("int16", -300), ("uint16", 20000), ("int16", None)])
def test_steps_of_one_scale(kind: str, zero: int | None, before: str, after: str) -> None:
    point = None if zero is None else np.array([zero])
    session = compare(model(kind, np.array([0.7], np.float32), point, before, after))
    assert "computes other steps" in str(session.explain())


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -2, 2])
@pytest.mark.parametrize("before", BEFORE)
def test_steps_of_16_bits_by_axis(before: str, axis: int, *, free: bool) -> None:
    size = (2, 3, 40)[axis]
    scale = RANDOM.uniform(0.3, 3, size).astype(np.float32)
    zero = RANDOM.integers(0, 60000, size)
    compare(model("uint16", scale, zero, before, "Relu", free=free, axis=axis))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("axis", [0, 2, -1])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_steps_of_8_bits_by_axis(kind: str, before: str, axis: int, *, free: bool) -> None:
    size = (2, 3, 40)[axis]
    scale = (2.0 ** RANDOM.integers(6, 10, size)).astype(np.float32)
    zero = RANDOM.integers(0, 100, size)
    session = compare(model(kind, scale, zero, before, "Relu", free=free, axis=axis))
    assert "computes other steps" in str(session.explain())


def test_steps_of_8_bits_are_left_to_openvino() -> None:
    data = model("uint8", np.array([512], np.float32), np.array([128]), "Mul", "Relu")
    assert "written out" not in str(compare(data).explain())

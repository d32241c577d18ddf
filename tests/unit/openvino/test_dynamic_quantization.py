"""DynamicQuantizeLinear on OpenVINO, to the bit: its quotients are those of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.hw("openvino-cpu")


def quantizer(shape: list[int | str], outputs: tuple[str, str, str] = ("y", "s", "z")) -> Any:
    kinds = {"y": (TensorProto.UINT8, shape), "s": (TensorProto.FLOAT, []), "z": (2, [])}
    node = helper.make_node("DynamicQuantizeLinear", ["x"], list(outputs))
    made = [helper.make_tensor_value_info(name, *kinds[name]) for name in outputs if name]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph([node], "quantizer", given, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def opened(model: Any, providers: tuple[str, ...] = (OPENVINO,)) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=providers)
    counts = session.explain().node_counts()
    assert set(counts) == {OPENVINO}, counts
    return session


def random_case(random: np.random.Generator, number: int, shape: tuple[int, ...]) -> Array:
    """Numbers of any size and sign, with ends that make quotients at the border of two steps."""
    x = random.standard_normal(shape) * 10.0 ** random.integers(-6, 6)
    kinds = (
        x,
        np.abs(x) + 1,
        -np.abs(x) - 1,
        np.round(x * 4) / 4,
        random.integers(-300, 300, shape),
    )
    return np.asarray(kinds[number % len(kinds)], np.float32)


@pytest.mark.parametrize("shape", [(1000,), (1, 3, 17, 9), (5, 7, 31)])
def test_random_tensors_get_the_steps_of_the_reference(shape: tuple[int, ...]) -> None:
    model = quantizer(["a", *shape[1:]])
    reference = ReferenceEvaluator(model)
    peer = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    random = np.random.default_rng(len(shape))
    with opened(model) as session:
        for number in range(40):
            feed = {"x": random_case(random, number, shape)}
            found = session.run(None, feed)
            expected = [peer.run(None, feed)]
            if feed["x"].any():  # the reference gives zeros a scale of 1/255, onnxruntime 1
                expected.append(reference.run(None, feed))
            for one in expected:
                for mine, theirs in zip(found, one, strict=True):
                    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e-30, 3e38])
def test_a_tensor_of_one_value(value: float) -> None:
    model = quantizer([4, 2])
    feed = {"x": np.full((4, 2), value, np.float32)}
    peer = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    with opened(model) as session:
        for mine, theirs in zip(session.run(None, feed), peer.run(None, feed), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("outputs", [("y", "", ""), ("y", "s", ""), ("y", "", "z")])
def test_outputs_that_are_left_out(outputs: tuple[str, str, str]) -> None:
    model = quantizer([6], outputs)
    feed = {"x": np.linspace(-1, 2, 6, dtype=np.float32)}
    with opened(model) as session:
        found = session.run(None, feed)
    for mine, theirs in zip(found, ReferenceEvaluator(model).run(None, feed), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_quantised_network_is_one_partition_with_exact_sums() -> None:
    random = np.random.default_rng(3)
    kernel = random.integers(-63, 63, (8, 3, 3, 3)).astype(np.int8)
    weights = random.integers(-63, 63, (8, 5)).astype(np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("ConvInteger", ["q", "kernel", "z"], ["sums"], pads=[1, 1, 1, 1]),
        helper.make_node("Cast", ["sums"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "each"], ["scale"]),
        helper.make_node("Mul", ["floats", "scale"], ["image"]),
        helper.make_node("Relu", ["image"], ["positive"]),
        helper.make_node("Transpose", ["positive"], ["last"], perm=[0, 2, 3, 1]),
        helper.make_node("DynamicQuantizeLinear", ["last"], ["q2", "s2", "z2"]),
        helper.make_node("MatMulInteger", ["q2", "weights", "z2"], ["sums2"]),
        helper.make_node("Cast", ["sums2"], ["floats2"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["floats2", "s2"], ["y"]),
    ]
    initializers = [
        onnx_tensor(name, value)
        for name, value in (
            ("kernel", kernel),
            ("weights", weights),
            ("each", (random.random((8, 1, 1)) / 100).astype(np.float32)),
        )
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "h", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    reference = ReferenceEvaluator(model)
    with opened(model) as session:
        assert len(session.explain().partitions) == 1
        for height in (5, 16):
            feed = {"x": random.standard_normal((1, 3, height, 16)).astype(np.float32)}
            (expected,) = reference.run(None, feed)
            np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=1e-6, atol=1e-6)


def onnx_tensor(name: str, value: Array) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor(name, kind, value.shape, value.tobytes(), raw=True)

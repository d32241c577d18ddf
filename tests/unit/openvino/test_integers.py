"""Integers beyond 32 bits: never in OpenVINO's hands, always right."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
BIG = 1 << 40
I64 = np.int64


def array(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, I64)


def node(op: str, *names: str, **attributes: Any) -> Any:
    return helper.make_node(op, names, ["y"], **attributes)


Case = tuple[Any, dict[str, np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any]]]

KEPT_AWAY: dict[str, Case] = {
    "a float cast": (
        node("Cast", "x", to=TensorProto.INT64),
        {"x": np.array([1e12, -3.0], np.float32)},
        {},
    ),
    "a cast like an int64": (
        node("CastLike", "x", "t"),
        {"x": np.array([1e12], np.float32)},
        {"t": array(1)},
    ),
    "a large constant": (
        node("Where", "x", "big", "small"),
        {"x": np.array([True, False])},
        {"big": array(BIG, BIG), "small": array(1, 2)},
    ),
    "a large number in a long table": (
        node("Gather", "table", "x"),
        {"x": np.array([0, 99_999], np.int32)},
        {"table": np.arange(100_000) * BIG},
    ),
    "a large value to fill with": (
        node("ConstantOfShape", "x", value=numpy_helper.from_array(array(BIG))),
        {"x": array(3)},
        {},
    ),
    "int64 products": (
        node("MatMul", "x", "w"),
        {"x": array(1 << 20, 1 << 20).reshape(1, 2)},
        {"w": array(1 << 20, 1 << 20).reshape(2, 1)},
    ),
    "adding where it scatters": (
        node("ScatterND", "x", "at", "more", reduction="add"),
        {"x": array((1 << 31) - 1, 0)},
        {"at": array(0).reshape(1, 1), "more": array(1)},
    ),
}


def model(case: Case) -> bytes:
    made, inputs, constants = case
    graph = helper.make_graph(
        [made],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in inputs.items()
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        [numpy_helper.from_array(x, n) for n, x in constants.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("name", KEPT_AWAY)
def test_what_may_need_more_than_32_bits_is_computed_right(name: str) -> None:
    case = KEPT_AWAY[name]
    content = model(case)
    with ort.InferenceSession(content, providers=[OPENVINO, CPU]) as session:
        found = session.run(None, case[1])[0]
        assert list(session.explain().node_counts()) == [CPU]
        assert "32 bits" in str(session.explain())
    (expected,) = ReferenceEvaluator(content).run(None, case[1])
    np.testing.assert_array_equal(found, expected)


TAKEN: dict[str, Case] = {
    "a slice to the end": (
        node("Slice", "x", "start", "end"),
        {"x": array(1, 2, 3)},
        {"start": array(1), "end": array(np.iinfo(I64).max)},
    ),
    "a cast of narrow integers": (
        node("Cast", "x", to=TensorProto.INT64),
        {"x": np.array([-5, 7], np.int8)},
        {},
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_fits_32_bits_stays_with_openvino(name: str) -> None:
    case = TAKEN[name]
    with ort.InferenceSession(model(case), providers=[OPENVINO, CPU]) as session:
        found = session.run(None, case[1])[0]
        assert list(session.explain().node_counts()) == [OPENVINO]
    (expected,) = ReferenceEvaluator(model(case)).run(None, case[1])
    np.testing.assert_array_equal(found, expected)


LARGEST, SMALLEST = np.iinfo(I64).max, np.iinfo(I64).min


def bounds_model(*nodes: Any, outputs: dict[str, int] | None = None) -> bytes:
    """Slices of x [n, 6] float to bounds that are made of `size` [1] and int64 constants."""
    outputs = outputs or {"y": TensorProto.FLOAT}
    graph = helper.make_graph(
        list(nodes),
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6]),
            helper.make_tensor_value_info("size", TensorProto.INT32, [1]),
        ],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
        [
            numpy_helper.from_array(values, name)
            for name, values in {
                "largest": array(LARGEST),
                "smallest": array(SMALLEST),
                "ones": array(1, 1),
                "axes": array(0, 1),
                "back": array(1, -1),
                "minus": array(-1),
            }.items()
        ],
    )
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


WIDE = helper.make_node("Cast", ["size"], ["wide"], to=TensorProto.INT64)
TO_THE_END = helper.make_node("Concat", ["wide", "largest"], ["ends"], axis=0)
TAIL = helper.make_node("Slice", ["x", "ones", "ends", "axes"], ["y"])
FED = {"x": np.arange(24, dtype=np.float32).reshape(4, 6), "size": np.array([3], np.int32)}


@pytest.mark.parametrize(
    "nodes",
    [
        (WIDE, TO_THE_END, TAIL),
        (
            WIDE,
            helper.make_node("Concat", ["wide", "minus"], ["starts"], axis=0),
            helper.make_node("Concat", ["largest", "smallest"], ["ends"], axis=0),
            helper.make_node("Slice", ["x", "starts", "ends", "axes", "back"], ["y"]),
        ),
    ],
)
def test_bounds_beyond_32_bits_mean_the_end_and_stay_with_openvino(nodes: tuple[Any, ...]) -> None:
    content = bounds_model(*nodes)
    with ort.InferenceSession(content, providers=[OPENVINO, CPU]) as session:
        found = session.run(None, FED)[0]
        assert set(session.explain().node_counts()) == {OPENVINO}
    (expected,) = ReferenceEvaluator(content).run(None, FED)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ((WIDE, TO_THE_END, TAIL), {"y": TensorProto.FLOAT, "ends": TensorProto.INT64}),
        (
            (WIDE, TO_THE_END, TAIL, helper.make_node("Neg", ["ends"], ["z"])),
            {"y": TensorProto.FLOAT, "z": TensorProto.INT64},
        ),
        (
            (
                WIDE,
                TO_THE_END,
                helper.make_node("Slice", ["ends", "minus", "largest"], ["y"]),
            ),
            {"y": TensorProto.INT64},
        ),
    ],
)
def test_bounds_that_something_else_reads_keep_their_values(
    nodes: tuple[Any, ...], outputs: dict[str, int]
) -> None:
    content = bounds_model(*nodes, outputs=outputs)
    with ort.InferenceSession(content, providers=[OPENVINO, CPU]) as session:
        found = session.run(None, FED)
    for value, expected in zip(found, ReferenceEvaluator(content).run(None, FED), strict=True):
        np.testing.assert_array_equal(value, expected)


def test_a_reader_of_another_domain_gets_all_64_bits() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (int64[2] x) => (int64[1, 2] whole) <int32 axis = {0}> {
      sum = Add(x, x) whole = com.microsoft.ExpandDims(sum, axis) }"""
    content = onnx.parser.parse_model(text).SerializeToString()
    feed = {"x": array((1 << 31) - 1, -5)}
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(content, options, providers=[OPENVINO, CPU]) as session:
        found = session.run(None, feed)
    reference = onnxruntime.InferenceSession(content, providers=[CPU])
    for value, expected in zip(found, reference.run(None, feed), strict=True):
        np.testing.assert_array_equal(value, expected)

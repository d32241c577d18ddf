"""Reductions over one of three dimensions, with what the CPU plug-in would fuse into them."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import ort_lite as ort

RNG = np.random.default_rng(0)
X = RNG.random((20, 3, 8), np.float32) + 0.5
ROWS = {"row": RNG.random((1, 3), np.float32), "column": RNG.random((1, 3, 1), np.float32)}
HALF = {"half": np.float32(0.5)}
AXES = {"last": np.array([-1]), "first": np.array([0])}


FREE, FIXED = "N", len(X)
"""The first size of x, as the model declares it: OpenVINO rewrites more where it is fixed."""


def run_both(nodes: list[NodeProto], batch: str | int = FREE) -> tuple[np.ndarray, np.ndarray]:
    """onnxruntime's answer and OpenVINO's, of nodes from x to y."""
    constants = {**ROWS, **HALF, **AXES}
    used = {name for node in nodes for name in node.input} & constants.keys()
    graph = helper.make_graph(
        nodes,
        "reductions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(constants[name]), name) for name in sorted(used)],
    )
    opsets = [helper.make_opsetid("", 18)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    peer = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (expected,) = peer.run(None, {"x": X})
    with ort.InferenceSession(data, providers=["OpenVINOExecutionProvider"]) as session:
        (found,) = session.run(None, {"x": X})
        assert session.get_providers()[0] == "OpenVINOExecutionProvider"
    return expected, found


@pytest.mark.parametrize(
    "reduce",
    [
        *("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
        "ReduceSum",
    ],
)
@pytest.mark.parametrize("follows", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("batch", [FREE, FIXED])
def test_constants_of_each_channel_are_computed_with_their_channel(
    reduce: str, follows: str, batch: str | int
) -> None:
    expected, found = run_both(
        [
            helper.make_node(reduce, ["x", "last"], ["r"], keepdims=0),
            helper.make_node(follows, ["row", "r"], ["y"]),
        ],
        batch,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("axis", ["last", "first"])
@pytest.mark.parametrize("batch", [FREE, FIXED])
def test_so_they_are_where_the_reduced_dimension_is_kept(axis: str, batch: str | int) -> None:
    expected, found = run_both(
        [
            helper.make_node("ReduceMean", ["x", axis], ["r"], keepdims=1),
            helper.make_node("Add", ["r", "column"], ["y"]),
        ],
        batch,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("batch", [FREE, FIXED])
def test_so_they_are_after_other_operators(batch: str | int) -> None:
    """As skl2onnx writes GaussianNB."""
    expected, found = run_both(
        [
            helper.make_node("ReduceSum", ["x", "last"], ["r"], keepdims=0),
            helper.make_node("Mul", ["r", "half"], ["h"]),
            helper.make_node("Exp", ["h"], ["e"]),
            helper.make_node("Sub", ["row", "e"], ["y"]),
        ],
        batch,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("batch", [FREE, FIXED])
def test_so_they_are_after_an_operator_of_two_that_read_the_reduction(batch: str | int) -> None:
    """Swish, which OpenVINO makes of both."""
    expected, found = run_both(
        [
            helper.make_node("ReduceMean", ["x", "last"], ["r"], keepdims=0),
            helper.make_node("Sigmoid", ["r"], ["s"]),
            helper.make_node("Mul", ["r", "s"], ["w"]),
            helper.make_node("Mul", ["w", "row"], ["y"]),
        ],
        batch,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("batch", [FREE, FIXED])
def test_so_they_are_after_a_global_pool(batch: str | int) -> None:
    expected, found = run_both(
        [
            helper.make_node("GlobalAveragePool", ["x"], ["r"]),
            helper.make_node("Mul", ["r", "column"], ["y"]),
        ],
        batch,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_reduction_itself_keeps_its_name_as_an_output() -> None:
    expected, found = run_both(
        [
            helper.make_node("ReduceSum", ["x", "last"], ["y"], keepdims=0),
            helper.make_node("Add", ["y", "row"], ["unused"]),
        ]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)

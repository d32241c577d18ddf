"""Functions of a model, which are inlined, and the operator sets that they import."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import ort_lite as ort

X = np.random.default_rng(0).standard_normal((2, 1, 3)).astype(np.float32)
CPU = ["CPUExecutionProvider"]
ML = "ai.onnx.ml"


def model_of(body: list[NodeProto], function_opsets: dict[str, int], opset: int) -> ModelProto:
    """A model that is one call, in both branches of If, of a function with this body."""
    imports = [helper.make_opsetid(domain, version) for domain, version in function_opsets.items()]
    function = helper.make_function("mine", "F", ["a"], ["b"], body, imports)
    branches = {}
    for name in ("then", "else"):
        call = helper.make_node("F", ["x"], [name], domain="mine")
        result = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        branches[f"{name}_branch"] = helper.make_graph([call], name, [], [result])
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
            helper.make_node("Cast", ["top"], ["chosen"], to=TensorProto.BOOL),
            helper.make_node("If", ["chosen"], ["y"], **branches),
        ],
        "calls",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=9)


def answers(model: ModelProto) -> tuple[np.ndarray, np.ndarray]:
    """onnxruntime's and ours."""
    data = model.SerializeToString()
    (expected,) = onnxruntime.InferenceSession(data, providers=CPU).run(None, {"x": X})
    with ort.InferenceSession(data, providers=CPU) as session:
        (found,) = session.run(None, {"x": X})
    return expected, found


@pytest.mark.parametrize(("of_function", "of_model"), [(13, 17), (17, 13), (21, 22), (17, 17)])
def test_a_function_may_import_another_opset_version_than_the_model(
    of_function: int, of_model: int
) -> None:
    body = [
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Transpose", ["r"], ["b"], perm=[2, 1, 0]),
    ]
    expected, found = answers(model_of(body, {"": of_function}, of_model))
    np.testing.assert_array_equal(found, expected)


def test_a_function_may_import_a_domain_that_the_model_does_not() -> None:
    body = [helper.make_node("Binarizer", ["a"], ["b"], domain=ML, threshold=0.5)]
    expected, found = answers(model_of(body, {ML: 3}, 17))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("of_function", "of_model"), [(12, 13), (13, 12)])
def test_the_model_s_opset_decides_where_versions_differ(of_function: int, of_model: int) -> None:
    """Softmax-12 without an axis takes all axes from the second on, Softmax-13 the last one."""
    body = [
        helper.make_node("Transpose", ["a"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Softmax", ["t"], ["b"]),
    ]
    expected, found = answers(model_of(body, {"": of_function}, of_model))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_node_that_the_model_s_opset_cannot_have_is_refused() -> None:
    """Squeeze-11 has its axes as an attribute, Squeeze-13 as an input."""
    body = [helper.make_node("Squeeze", ["a"], ["b"], axes=[1])]
    data = model_of(body, {"": 12}, 17).SerializeToString()
    refused = onnxruntime.capi.onnxruntime_pybind11_state.Fail
    with pytest.raises(refused, match="Unrecognized attribute: axes"):
        onnxruntime.InferenceSession(data, providers=CPU)
    with pytest.raises(ort.InvalidGraph, match="Unrecognized attribute: axes"):
        ort.InferenceSession(data, providers=CPU)

"""Indices that OpenVINO would not check: constants are looked at, the CPU EP takes the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
X = np.arange(6, dtype=np.float32).reshape(3, 2)


def session(op: str, indices: np.ndarray, *, constant: bool, **attributes: Any) -> Any:
    infos = [helper.make_tensor_value_info("x", 1, [3, 2])]
    constants = []
    if constant:
        constants.append(numpy_helper.from_array(indices, "i"))
    else:
        infos.append(helper.make_tensor_value_info("i", 7, indices.shape))
    node = helper.make_node(op, ["x", "i"], ["z"], **attributes)
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="z")], constants)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    data = onnx.shape_inference.infer_shapes(model).SerializeToString()
    return ort.InferenceSession(data, providers=[OPENVINO])


def feed(indices: np.ndarray, *, constant: bool) -> dict[str, np.ndarray]:
    return {"x": X} if constant else {"x": X, "i": indices}


@pytest.mark.parametrize(
    ("op", "indices", "constant"),
    [
        ("Gather", np.array([0, -3]), True),
        ("Gather", np.array([0, 2]), False),
        ("GatherND", np.array([[2, 1], [-3, 0]]), True),
    ],
    ids=["constant", "at run time", "tuples"],
)
def test_indices_in_range_are_openvino_s(op: str, indices: np.ndarray, constant: Any) -> None:
    with session(op, indices, constant=constant) as made:
        assert made.explain().node_counts() == {OPENVINO: 1}
        (found,) = made.run(None, feed(indices, constant=constant))
    wanted = X[indices] if op == "Gather" else X[tuple(indices.T)]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("op", "indices", "constant"),
    [
        ("Gather", np.array([0, 7]), True),
        ("Gather", np.array([-4]), True),
        ("GatherND", np.array([[3]]), True),
        ("GatherND", np.array([[0, 1 << 30]]), True),
        ("GatherND", np.array([[7]]), False),
    ],
    ids=["beyond", "before", "tuple beyond", "far beyond", "at run time"],
)
def test_indices_that_may_be_out_of_range_are_refused_by_the_cpu_ep(
    op: str, indices: np.ndarray, constant: Any
) -> None:
    with session(op, indices, constant=constant) as made:
        assert made.explain().node_counts() == {CPU: 1}
        with pytest.raises(ort.RuntimeException, match="indices element out of data bounds"):
            made.run(None, feed(indices, constant=constant))


def test_indices_that_follow_from_shapes_are_openvino_s() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 2] x) => (float[k, 2] z) <int64 zero = {0}, int64 one = {1}, int64[1] last = {-1}> {
      s = Shape <end = 1> (x) n = Squeeze(s) r = Range(zero, n, one) i = Unsqueeze(r, last)
      z = GatherND(x, i)
    }"""
    model = onnx.parser.parse_model(text).SerializeToString()
    with ort.InferenceSession(model, providers=[OPENVINO]) as made:
        assert made.explain().node_counts().get(CPU) is None
        np.testing.assert_array_equal(made.run(None, {"x": X})[0], X)


def test_a_batch_of_tuples_is_looked_at_behind_its_batch() -> None:
    indices = np.array([[1], [0], [-2]])
    with session("GatherND", indices, constant=True, batch_dims=1) as made:
        assert made.explain().node_counts() == {OPENVINO: 1}
        (found,) = made.run(None, {"x": X})
    np.testing.assert_array_equal(found, [1, 2, 4])

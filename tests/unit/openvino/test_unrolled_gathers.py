"""Gathers of every row of a tensor run on OpenVINO as one Split, with onnxruntime's numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
RNG = np.random.default_rng(48)


def model(
    indices: list[int], *, axis: int = 1, opset: int = 17, shape: tuple[int | str, ...] = (2, 12, 5)
) -> bytes:
    """The sum of rows, each times its number."""
    nodes, constants, terms = [], [], []
    for number, index in enumerate(indices):
        constants.append(numpy_helper.from_array(np.array(index, np.int64), f"i{number}"))
        constants.append(numpy_helper.from_array(np.array(number + 1, np.float32), f"f{number}"))
        nodes.append(helper.make_node("Gather", ["t", f"i{number}"], [f"r{number}"], axis=axis))
        nodes.append(helper.make_node("Mul", [f"r{number}", f"f{number}"], [f"m{number}"]))
        terms.append(f"m{number}")
    nodes = [helper.make_node("Sigmoid", ["x"], ["t"]), *nodes]
    nodes.append(helper.make_node("Concat", terms, ["y"], axis=0))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def check(data: bytes, *shapes: tuple[int, ...], is_split: bool) -> None:
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        session.disable_fallback()
        assert ("Split" in str(session.explain())) is is_split
        for shape in shapes:
            feed = {"x": RNG.standard_normal(shape, dtype=np.float32)}
            (right,) = onnxruntime.InferenceSession(data).run(None, feed)
            (result,) = session.run(None, feed)
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("axis", [1, -2])
def test_every_row(axis: int, opset: int) -> None:
    check(model(list(range(12)), axis=axis, opset=opset), (2, 12, 5), is_split=True)


def test_rows_from_the_end_and_rows_that_come_twice() -> None:
    check(model([-1, 3, 3, 0, -12, 5, 6, 7, 11, 8]), (2, 12, 5), is_split=True)


def test_rows_of_a_tensor_with_other_free_dimensions() -> None:
    data = model(list(range(12)), shape=("b", 12, "c"))
    check(data, (2, 12, 5), (1, 12, 3), (4, 12, 5), is_split=True)


def test_the_first_rows_of_a_free_number() -> None:
    data = model(list(range(12)), shape=(2, "n", 5))
    check(data, (2, 12, 5), (2, 15, 5), (2, 13, 5), is_split=True)


def test_rows_that_a_feed_lacks_are_an_error() -> None:
    data = model(list(range(12)), shape=(2, "n", 5))
    with ort.InferenceSession(data, providers=[OPENVINO]) as session:
        session.disable_fallback()
        with pytest.raises(ort.EPFail):
            session.run(None, {"x": np.ones((2, 11, 5), np.float32)})


@pytest.mark.parametrize(
    ("indices", "shape"),
    [
        ([0, 1, 2], (2, 3, 5)),
        (list(range(8)), (2, 40, 5)),
        (list(range(-12, 0)), (2, "n", 5)),
    ],
    ids=["few", "of many", "the last of a free number"],
)
def test_other_gathers_stay(indices: list[int], shape: tuple[int | str, ...]) -> None:
    fed = tuple(12 if isinstance(size, str) else size for size in shape)
    check(model(indices, shape=shape), fed, is_split=False)

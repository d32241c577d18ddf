"""Range keeps whole numbers for the next run; a result that is handed out is nobody else's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from unit.cpu.single_node import run_node

import ort_lite as ort


def open_ranges(kind: int) -> ort.InferenceSession:
    names = ("start", "limit", "delta")
    graph = helper.make_graph(
        [helper.make_node("Range", names, ["y"]), helper.make_node("Neg", ["y"], ["negative"])],
        "ranges",
        [helper.make_tensor_value_info(name, kind, []) for name in names],
        [helper.make_tensor_value_info(name, kind, [None]) for name in ("y", "negative")],
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


RUNS = [
    *((0, 9, 1), (0, 5, 1), (0, 7, 1), (2, 7, 1), (0, 9, 2), (0, 9, 1), (5, 1, 1), (9, 0, -2)),
    *((0, 300_000, 1), (0, 4, 1), (0, 0, 1)),
]


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(TensorProto.INT64, np.int64), (TensorProto.INT32, np.int32), (TensorProto.FLOAT, np.float32)],
    ids=["int64", "int32", "float"],
)
def test_every_run_has_its_own_numbers(kind: int, dtype: Any) -> None:
    with open_ranges(kind) as session:
        for start, limit, delta in RUNS:
            numbers = {"start": start, "limit": limit, "delta": delta}
            feed = {name: np.array(value, dtype) for name, value in numbers.items()}
            y, negative = session.run(None, feed)
            expected = np.arange(start, limit, delta, dtype)
            np.testing.assert_array_equal(y, expected)
            np.testing.assert_array_equal(negative, -expected)
            assert y.flags.writeable
            y[:] = 77  # the caller's to change


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float64])
def test_channels_that_come_last_are_copied_in_order(columns: int, dtype: Any) -> None:
    planes = np.random.default_rng(0).integers(0, 200, (2, columns, 40, 50)).astype(dtype)
    last = planes.transpose(0, 2, 3, 1)
    for shape in ([2, 2000, columns], [-1], [0, 0, 50 * columns]):
        y = run_node("Reshape", last, np.array(shape, np.int64), opset=17)
        sizes = [last.shape[i] if size == 0 else size for i, size in enumerate(shape)]
        np.testing.assert_array_equal(y, np.ascontiguousarray(last).reshape(sizes))


@pytest.mark.parametrize("a", [-7, 0, 7, 2**62])
@pytest.mark.parametrize("b", [-2, 0, 2, 2**62])
def test_quotients_of_single_sizes_are_rounded_toward_zero(a: int, b: int) -> None:
    y = run_node("Div", np.array([a]), np.array([[b]]), opset=17)
    assert y.shape == (1, 1)
    assert y.item() == (0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))

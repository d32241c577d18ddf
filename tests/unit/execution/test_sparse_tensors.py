"""Sparse tensors as values, constants and inputs: the same program for onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import ort_lite as ort
from ort_lite.capi import onnxruntime_pybind11_state as binding

CPU = ["CPUExecutionProvider"]
BOTH = pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
VALUES = np.array([1, 2, 3], np.float32)
FLAT = np.array([2, 3, 8], np.int64)
PAIRS = np.array([[0, 2], [1, 0], [2, 2]], np.int64)
DENSE = np.array([[0, 0, 1], [2, 0, 0], [0, 0, 3]], np.float32)
INNER, OUTER = np.array([2, 0, 2], np.int64), np.array([0, 1, 2, 3], np.int64)


def host(module: Any) -> Any:
    return module.OrtDevice.make("cpu", 0)


def coordinates(module: Any, indices: Any = PAIRS) -> Any:
    return module.SparseTensor.sparse_coo_from_numpy([3, 3], VALUES, indices, host(module))


def by_rows(module: Any) -> Any:
    return module.SparseTensor.sparse_csr_from_numpy([3, 3], VALUES, INNER, OUTER, host(module))


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **more: Any) -> bytes:
    graph = helper.make_graph(nodes, "sparse", inputs, outputs, **more)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def product(**attributes: Any) -> bytes:
    node = helper.make_node(
        "SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft", **attributes
    )
    a = helper.make_sparse_tensor_value_info("a", TensorProto.FLOAT, [3, 3])
    b = helper.make_tensor_value_info("b", TensorProto.FLOAT, [3, "n"])
    return model([node], [a, b], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])


@BOTH
def test_a_sparse_tensor_says_what_it_holds(module: Any) -> None:
    tensor = coordinates(module)
    assert tensor.format() == module.OrtSparseFormat.ORT_SPARSE_COO
    assert str(tensor.format()) == "OrtSparseFormat.ORT_SPARSE_COO"
    assert tensor.dense_shape() == [3, 3]
    assert (tensor.data_type(), tensor.device_name()) == ("sparse_tensor(float)", "cpu")
    np.testing.assert_array_equal(tensor.values(), VALUES)
    np.testing.assert_array_equal(tensor.as_coo_view().indices(), PAIRS)
    assert np.shares_memory(tensor.values(), VALUES)
    np.testing.assert_array_equal(coordinates(module, FLAT).as_coo_view().indices(), FLAT)
    rows = by_rows(module)
    assert rows.format() == module.OrtSparseFormat.ORT_SPARSE_CSRC
    np.testing.assert_array_equal(rows.as_csrc_view().inner(), INNER)
    np.testing.assert_array_equal(rows.as_csrc_view().outer(), OUTER)


@BOTH
def test_a_value_holds_a_sparse_tensor(module: Any) -> None:
    value = module.OrtValue.ort_value_from_sparse_tensor(coordinates(module))
    assert (value.is_sparse_tensor(), value.is_tensor(), value.has_value()) == (True, False, True)
    assert (value.data_type(), value.shape(), value.element_type()) == (
        "sparse_tensor(float)",
        [3, 3],
        TensorProto.FLOAT,
    )
    np.testing.assert_array_equal(value.as_sparse_tensor().values(), VALUES)
    with pytest.raises(RuntimeError, match="Only OrtValues that are Tensors"):
        value.numpy()
    with pytest.raises(RuntimeError, match="does not contain SparseTensor"):
        module.OrtValue.ortvalue_from_numpy(VALUES).as_sparse_tensor()


@BOTH
def test_what_does_not_fit_is_refused(module: Any) -> None:
    with pytest.raises(RuntimeError, match="Index size: 2 must be equal to or twice the values"):
        coordinates(module, FLAT[:2])
    with pytest.raises(RuntimeError, match="Expecting values 1-D numpy values array for COO"):
        module.SparseTensor.sparse_coo_from_numpy([3, 3], DENSE, FLAT, host(module))
    for inner, outer in ((INNER[:2], OUTER), (INNER, OUTER[:3])):
        with pytest.raises(RuntimeError, match=r"outer|inner|Outer|Inner"):
            module.SparseTensor.sparse_csr_from_numpy([3, 3], VALUES, inner, outer, host(module))
    with pytest.raises(RuntimeError, match=r"does not contain CSR\(C\) format"):
        coordinates(module).as_csrc_view()
    with pytest.raises(RuntimeError, match="does not contain COO format"):
        by_rows(module).as_coo_view()
    with pytest.raises(RuntimeError, match="does not contain BlockSparse format"):
        by_rows(module).as_blocksparse_view()
    with pytest.raises(RuntimeError, match="Cuda is not available in this build"):
        coordinates(module).to_cuda(host(module))
    with pytest.raises(ValueError, match="`Provided object` needs to be of type"):
        module.SparseTensor(DENSE)


def test_blocks_have_their_places() -> None:
    """onnxruntime 1.31.1's binding reads the indices as another type and raises."""
    make = binding.SparseTensor.blocksparse_from_numpy
    places = np.array([[0, 1], [1, 0]], np.int32)
    tensor = make([4, 4], np.ones((2, 2, 2), np.float32), places, host(ort))
    assert tensor.format == ort.OrtSparseFormat.ORT_SPARSE_BLOCK_SPARSE
    np.testing.assert_array_equal(tensor.get_blocksparse_data().indices(), places)
    with pytest.raises(RuntimeError, match=r"expect values \[blocks, rows, columns\]"):
        make([4, 4], np.ones((2, 4), np.float32), places, host(ort))


@BOTH
@pytest.mark.parametrize("form", [coordinates, by_rows])
@pytest.mark.parametrize("attributes", [{}, {"alpha": 2.5}, {"transA": 1}, {"transB": 1}])
def test_a_sparse_matrix_is_multiplied(module: Any, form: Any, attributes: dict[str, Any]) -> None:
    b = np.arange(9, dtype=np.float32).reshape(3, 3)
    feed = {
        "a": module.OrtValue.ort_value_from_sparse_tensor(form(module)),
        "b": module.OrtValue.ortvalue_from_numpy(b),
    }
    session = module.InferenceSession(product(**attributes), providers=CPU)
    (found,) = session.run_with_ort_values(["y"], feed)
    left = DENSE.T if "transA" in attributes else DENSE
    expected = left @ (b.T if "transB" in attributes else b) * attributes.get("alpha", 1)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_a_feed_that_is_no_such_sparse_tensor_is_refused() -> None:
    session, b = ort.InferenceSession(product(), providers=CPU), DENSE
    with pytest.raises(ort.InvalidArgument, match=r"expected: \(sparse_tensor\(float\)\)"):
        session.run(None, {"a": DENSE, "b": b})
    doubles = ort.SparseTensor.sparse_coo_from_numpy([3, 3], VALUES.astype("d"), FLAT, host(ort))
    with pytest.raises(ort.InvalidArgument, match=r"Actual: \(sparse_tensor\(double\)\)"):
        session.run(None, {"a": ort.OrtValue.ort_value_from_sparse_tensor(doubles), "b": b})
    small = ort.SparseTensor.sparse_coo_from_numpy([2, 3], VALUES, FLAT, host(ort))
    with pytest.raises(ort.InvalidArgument, match=r"Got: \[2, 3\] Expected: \[3, 3\]"):
        session.run(None, {"a": ort.OrtValue.ort_value_from_sparse_tensor(small), "b": b})


@pytest.mark.parametrize(
    ("indices", "said"), [(np.array([0, 1, 9]), "outside"), (np.array([0, -1, 2]), "outside")]
)
def test_an_index_outside_the_matrix_is_an_error_of_the_run(indices: Any, said: str) -> None:
    """onnxruntime reads memory there."""
    feed = {"a": ort.OrtValue.ort_value_from_sparse_tensor(coordinates(ort, indices)), "b": DENSE}
    with pytest.raises(ort.RuntimeException, match=said):
        ort.InferenceSession(product(), providers=CPU).run(None, feed)


def constant(indices: Any, dims: list[int]) -> Any:
    indices = np.asarray(indices, np.int64)
    places = helper.make_tensor("", TensorProto.INT64, indices.shape, indices.reshape(-1))
    return helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [3], VALUES), places, dims
    )


ADD = helper.make_node("Add", ["x", "w"], ["y"])
INPUT = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 3])
OUTPUT = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])


@BOTH
@pytest.mark.parametrize("indices", [FLAT, PAIRS], ids=["flat", "pairs"])
@pytest.mark.parametrize("as_node", [False, True], ids=["initializer", "node"])
def test_a_sparse_constant_has_its_zeros(module: Any, indices: Any, *, as_node: bool) -> None:
    held = constant(indices, [3, 3])
    node = helper.make_node("Constant", [], ["w"], sparse_value=held)
    data = (
        model([node, ADD], [INPUT], [OUTPUT])
        if as_node
        else model([ADD], [INPUT], [OUTPUT], sparse_initializer=[held])
    )
    (found,) = module.InferenceSession(data, providers=CPU).run(None, {"x": DENSE})
    np.testing.assert_array_equal(found, DENSE * 2)


@BOTH
def test_a_sparse_output_comes_as_it_is(module: Any) -> None:
    node = helper.make_node("Constant", [], ["w"], sparse_value=constant(FLAT, [3, 3]))
    output = helper.make_sparse_tensor_value_info("w", TensorProto.FLOAT, [3, 3])
    session = module.InferenceSession(model([node], [], [output]), providers=CPU)
    (value,) = session.run_with_ort_values(["w"], {})
    tensor = value.as_sparse_tensor()
    np.testing.assert_array_equal(tensor.values(), VALUES)
    np.testing.assert_array_equal(tensor.as_coo_view().indices(), FLAT)
    assert tensor.dense_shape() == [3, 3]


@pytest.mark.parametrize(
    ("indices", "dims", "said"),
    [
        ([0, 1, 9], [3, 3], "an index is outside"),
        ([0, 1, -1], [3, 3], "an index is outside"),
        ([[0, 0], [0, 3], [1, 1]], [3, 3], "an index is outside"),
        ([0, 1], [3, 3], r"indices are int64\[2\], expected"),
        ([0, 1, 2], [1 << 31, 1 << 31], "do not fit into memory"),
    ],
)
def test_a_sparse_constant_that_cannot_be_is_refused(
    indices: Any, dims: list[int], said: str
) -> None:
    data = model([ADD], [INPUT], [OUTPUT], sparse_initializer=[constant(indices, dims)])
    with pytest.raises(ort.InvalidGraph, match=said):
        ort.InferenceSession(data, providers=CPU)


def test_a_sparse_constant_as_output_runs_behind_every_execution_provider() -> None:
    """onnx's inference says "data type 0" of it, which no execution provider can read."""
    values = helper.make_tensor("v", TensorProto.FLOAT, [3], VALUES)
    indices = helper.make_tensor("i", TensorProto.INT64, [3], [2, 3, 5])
    sparse = helper.make_sparse_tensor(values, indices, [3, 3])
    node = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
    output = helper.make_sparse_tensor_value_info("y", TensorProto.FLOAT, [3, 3])
    graph = helper.make_graph([node], "sparse", [], [output])
    opset = [helper.make_opsetid("", 17)]
    data = helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()
    with ort.InferenceSession(data) as session:
        (found,) = session.run(None, {})
        assert session.get_outputs()[0].type == "sparse_tensor(float)"
    assert found.values().tolist() == pytest.approx(list(VALUES))


@BOTH
def test_the_memory_of_a_sparse_tensor_is_lent_read_only(module: Any) -> None:
    coordinate_form = coordinates(module)
    rows = module.SparseTensor.sparse_csr_from_numpy([3, 3], VALUES, INNER, OUTER, host(module))
    lent = [
        coordinate_form.values(),
        coordinate_form.as_coo_view().indices(),
        rows.as_csrc_view().inner(),
        rows.as_csrc_view().outer(),
    ]
    assert [array.flags.writeable for array in lent] == [False] * 4

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import DataType, ExternalData, Tensor
from ort_lite.model.tensor_values import (
    from_numpy,
    numpy_dtype,
    onnx_data_type,
    to_numpy,
    type_string,
)
from ort_lite.status import Fail, InvalidArgument

TYPES = [t for t in DataType if t not in (DataType.UNDEFINED, DataType.STRING)]


def decoded(proto: onnx.TensorProto) -> Tensor:
    """`proto` as the model reader gives it."""
    graph = onnx.helper.make_graph([], "g", [], [], [proto])
    model = onnx.helper.make_model(graph).SerializeToString()
    return read_model(memoryview(model)).graph.initializers[proto.name]


@pytest.mark.parametrize("kind", TYPES, ids=lambda t: t.name)
def test_every_type_is_read_and_written_as_onnx_does(kind: DataType) -> None:
    dtype = numpy_dtype(kind)
    array = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]]).astype(dtype)
    proto = numpy_helper.from_array(array, "t")
    assert proto.data_type == kind
    read = to_numpy(decoded(proto))
    assert read.dtype == dtype
    assert read.tobytes() == array.tobytes()
    written = from_numpy(array, "t")
    assert (written.data_type, written.dims) == (kind, (3, 3))
    assert bytes(written.data) == proto.raw_data


@pytest.mark.parametrize("kind", [DataType.INT4, DataType.INT2], ids=lambda t: t.name)
def test_negative_packed_integers_keep_their_sign(kind: DataType) -> None:
    array = np.array([-1, 1, -2, 0, -1]).astype(numpy_dtype(kind))
    assert to_numpy(from_numpy(array)).tolist() == array.tolist()


def test_strings_are_objects_and_come_back_as_utf_8() -> None:
    array = np.array([["a", "ß"]], object)
    tensor = from_numpy(array, "t")
    assert tensor.data == (b"a", "ß".encode())
    assert to_numpy(tensor).tolist() == [["a", "ß"]]
    assert onnx_data_type(np.array(["x"]).dtype) == DataType.STRING


def test_raw_data_is_not_copied_and_not_writable() -> None:
    data = bytearray(np.arange(4, dtype=np.float32).tobytes())
    array = to_numpy(Tensor("t", DataType.FLOAT, (2, 2), memoryview(data)))
    data[0:4] = np.float32(9).tobytes()
    assert array[0, 0] == 9
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_an_array_that_is_not_contiguous_is_written_in_order() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3).T
    assert to_numpy(from_numpy(array)).tolist() == array.tolist()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_scalars_and_empty_tensors_keep_their_shape(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    assert to_numpy(from_numpy(array)).shape == shape


def test_external_data_is_read_by_whoever_knows_where_it_is() -> None:
    tensor = Tensor("t", DataType.INT64, (2,), ExternalData("weights.bin"))
    raw = np.array([3, 4], np.int64).tobytes()
    assert to_numpy(tensor, lambda where: memoryview(raw)).tolist() == [3, 4]
    with pytest.raises(Fail, match=r"its data is in 'weights\.bin'"):
        to_numpy(tensor)


def test_bytes_that_do_not_fit_the_shape_are_refused() -> None:
    with pytest.raises(Fail, match=r"tensor 't': 3 bytes, its type and shape \(2,\) take 8"):
        to_numpy(Tensor("t", DataType.FLOAT, (2,), memoryview(b"abc")))
    with pytest.raises(Fail, match=r"tensor 't': 1 strings for shape \(2,\)"):
        to_numpy(Tensor("t", DataType.STRING, (2,), (b"a",)))


def test_types_that_one_side_lacks_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="data type 99 is not defined by ONNX"):
        numpy_dtype(99)
    with pytest.raises(InvalidArgument, match="has no ONNX type"):
        onnx_data_type(np.dtype("datetime64[s]"))


def test_type_strings_are_those_of_onnxruntime() -> None:
    assert type_string(np.dtype(np.float32)) == "tensor(float)"
    assert type_string(np.dtype(ml_dtypes.bfloat16)) == "tensor(bfloat16)"
    assert type_string(np.dtype(">i8")) == "tensor(int64)"


def test_an_empty_shape_that_numpy_cannot_count_is_a_typed_error() -> None:
    tensor = Tensor("t", DataType.FLOAT, (0, 1 << 62), memoryview(b""))
    with pytest.raises(
        Fail, match=r"tensor 't': no array has the shape \(0, 4611686018427387904\)"
    ):
        to_numpy(tensor)


def test_a_string_that_is_not_utf_8_is_a_typed_error() -> None:
    tensor = Tensor("t", DataType.STRING, (2,), (b"fine", b"\xff"))
    with pytest.raises(Fail, match=r"tensor 't': string 1 is not UTF-8"):
        to_numpy(tensor)

"""ONNX files as values: read as onnx reads them, written as onnx understands them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from ctx_formats.errors import FormatError
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import encode_model, model_bytes
from ctx_formats.onnx_model import (
    DataType,
    ExternalData,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    Tensor,
    TensorType,
)
from ctx_formats.tensor_size import tensor_bytes

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FILES = sorted(DATA.glob("light/*.onnx")) + sorted(DATA.glob("simple/*/model.onnx"))
FILES += sorted(DATA.glob("pytorch-*/*/model.onnx"))


def one_node(*attributes: AttributeProto, **graph: Any) -> onnx.ModelProto:
    node = helper.make_node("Op", ["x"], ["y"], name="n", domain="d", doc_string="doc")
    node.attribute.extend(attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "N", None])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    made = helper.make_graph([node], "g", [x], [y], **graph)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])


def round_trip(proto: onnx.ModelProto) -> onnx.ModelProto:
    data = proto.SerializeToString()
    return onnx.load_model_from_string(model_bytes(read_model(memoryview(data))))


def test_there_are_files_to_read() -> None:
    assert len(FILES) > 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_model_of_the_onnx_package_survives(path: Path) -> None:
    data = path.read_bytes()
    model = read_model(memoryview(data))
    written = model_bytes(model)
    assert read_model(memoryview(written)) == model
    original, again = onnx.load_model_from_string(data), onnx.load_model_from_string(written)
    assert onnx.printer.to_text(again.graph) == onnx.printer.to_text(original.graph)
    assert len(again.graph.initializer) == len(original.graph.initializer)
    assert [(o.domain, o.version) for o in again.opset_import] == [
        (o.domain, o.version) for o in original.opset_import
    ]


ATTRIBUTES = {
    "f": 1.5,
    "i": -7,
    "s": "text",
    "t": numpy_helper.from_array(np.arange(6, dtype=np.int64).reshape(2, 3), "t"),
    "g": helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "inner", [], []),
    "floats": [0.5, -0.25],
    "ints": [1, -1, 1 << 40],
    "strings": ["a", "b"],
    "tensors": [numpy_helper.from_array(np.ones(2, np.float32))],
    "graphs": [helper.make_graph([], "empty", [], [])],
    "tp": helper.make_tensor_type_proto(TensorProto.INT8, [2]),
    "tps": [helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [None]))],
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_kind_of_attribute_survives(name: str) -> None:
    attribute = helper.make_attribute(name, ATTRIBUTES[name])
    (again,) = round_trip(one_node(attribute)).graph.node[0].attribute
    assert again == attribute


def test_an_empty_list_keeps_its_type() -> None:
    attribute = helper.make_attribute("axes", [], attr_type=AttributeProto.INTS)
    (again,) = round_trip(one_node(attribute)).graph.node[0].attribute
    assert again == attribute


def test_a_reference_in_a_function_survives() -> None:
    attribute = AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="beta")
    (again,) = round_trip(one_node(attribute)).graph.node[0].attribute
    assert again == attribute


TYPES = {
    "tensor": helper.make_tensor_type_proto(TensorProto.FLOAT16, [1, "N", None]),
    "no rank": helper.make_tensor_type_proto(TensorProto.FLOAT, None),
    "scalar": helper.make_tensor_type_proto(TensorProto.BOOL, []),
    "sparse": helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [4, 4]),
    "sequence": helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])),
    "optional": helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2])),
    "map": helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, [2])),
}


@pytest.mark.parametrize("name", TYPES)
def test_every_kind_of_type_survives(name: str) -> None:
    proto = one_node()
    proto.graph.input[0].type.CopyFrom(TYPES[name])
    assert round_trip(proto).graph.input[0] == proto.graph.input[0]


def test_types_become_values() -> None:
    proto = one_node()
    for type_proto, expected in (
        (TYPES["tensor"], TensorType(DataType.FLOAT16, (1, "N", None))),
        (TYPES["no rank"], TensorType(DataType.FLOAT, None)),
        (TYPES["sparse"], SparseTensorType(DataType.FLOAT, (4, 4))),
        (TYPES["sequence"], SequenceType(TensorType(1, (2,)))),
        (TYPES["optional"], OptionalType(TensorType(1, (2,)))),
        (TYPES["map"], MapType(7, TensorType(1, (2,)))),
    ):
        proto.graph.input[0].type.CopyFrom(type_proto)
        model = read_model(memoryview(proto.SerializeToString()))
        assert model.graph.inputs[0].type == expected


def in_fields(data_type: int, array: np.ndarray[Any, Any]) -> TensorProto:
    """A tensor in its typed field (float_data, int32_data, ...), not in raw_data."""
    values = array.flatten().tolist()
    return helper.make_tensor("t", data_type, array.shape, values)


@pytest.mark.parametrize(
    ("data_type", "array"),
    [
        (TensorProto.FLOAT, np.array([[1.5, -2], [np.inf, 0]], np.float32)),
        (TensorProto.DOUBLE, np.array([1e300, -1], np.float64)),
        (TensorProto.INT8, np.array([-128, 127], np.int8)),
        (TensorProto.UINT8, np.array([0, 255], np.uint8)),
        (TensorProto.INT16, np.array([-32768, 5], np.int16)),
        (TensorProto.UINT16, np.array([65535, 5], np.uint16)),
        (TensorProto.INT32, np.array([-(2**31), 5], np.int32)),
        (TensorProto.INT64, np.array([-(2**63), 2**63 - 1], np.int64)),
        (TensorProto.UINT32, np.array([2**32 - 1, 5], np.uint32)),
        (TensorProto.UINT64, np.array([2**64 - 1, 5], np.uint64)),
        (TensorProto.BOOL, np.array([True, False], np.bool_)),
        (TensorProto.FLOAT16, np.array([1.5, -0.0], np.float16)),
        (TensorProto.COMPLEX64, np.array([1 + 2j, -3j], np.complex64)),
        (TensorProto.COMPLEX128, np.array([1 + 2j, -3j], np.complex128)),
        (TensorProto.FLOAT, np.zeros((0, 3), np.float32)),
        (TensorProto.INT64, np.array(7, np.int64)),
    ],
)
def test_typed_fields_and_raw_data_give_the_same_bytes(
    data_type: int, array: np.ndarray[Any, Any]
) -> None:
    typed = in_fields(data_type, array)
    raw = numpy_helper.from_array(array, "t")
    found = []
    for tensor in (typed, raw):
        data = one_node(initializer=[tensor]).SerializeToString()
        found.append(read_model(memoryview(data)).graph.initializers["t"])
    assert bytes(found[0].data) == bytes(found[1].data) == array.tobytes()
    assert found[0].dims == array.shape


@pytest.mark.parametrize(
    "data_type",
    [
        TensorProto.BFLOAT16,
        TensorProto.FLOAT8E4M3FN,
        TensorProto.FLOAT8E5M2,
        TensorProto.INT4,
        TensorProto.UINT4,
    ],
)
def test_narrow_types_in_int32_data_are_packed_as_raw_data_is(data_type: int) -> None:
    values = [1.0, 2.0, 3.0]
    typed = helper.make_tensor("t", data_type, [3], values)
    array = numpy_helper.to_array(typed)
    raw = numpy_helper.from_array(array, "t")
    for tensor in (typed, raw):
        data = one_node(initializer=[tensor]).SerializeToString()
        found = read_model(memoryview(data)).graph.initializers["t"]
        assert bytes(found.data) == raw.raw_data
        assert len(raw.raw_data) == tensor_bytes(data_type, (3,))


def test_strings_are_kept_as_bytes() -> None:
    tensor = helper.make_tensor("t", TensorProto.STRING, [2], [b"a", "ä".encode()])
    data = one_node(initializer=[tensor]).SerializeToString()
    assert read_model(memoryview(data)).graph.initializers["t"].data == (b"a", "ä".encode())


def test_raw_data_is_a_view_of_the_file_and_passes_through_the_writer() -> None:
    data = one_node(
        initializer=[numpy_helper.from_array(np.arange(10_000, dtype=np.float32), "t")]
    ).SerializeToString()
    model = read_model(memoryview(data))
    view = model.graph.initializers["t"].data
    assert isinstance(view, memoryview)
    assert view.obj is data
    assert any(piece is view for piece in encode_model(model))


def test_external_data_is_described_and_written_back() -> None:
    tensor = TensorProto(name="t", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "w.bin", "offset": "64", "length": "16"}.items():
        tensor.external_data.add(key=key, value=value)
    proto = one_node(initializer=[tensor])
    found = read_model(memoryview(proto.SerializeToString())).graph.initializers["t"]
    assert found.data == ExternalData("w.bin", 64, 16)
    assert round_trip(proto).graph.initializer[0] == tensor


def test_functions_metadata_and_descriptions_survive() -> None:
    function = helper.make_function(
        "local",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    proto = one_node()
    proto.functions.append(function)
    proto.producer_name, proto.producer_version = "me", "1"
    proto.domain, proto.model_version, proto.doc_string = "dom", 0, "about"
    helper.set_model_props(proto, {"a": "b", "c": ""})
    again = round_trip(proto)
    assert again.functions[0] == function
    assert [(p.key, p.value) for p in again.metadata_props] == [("a", "b"), ("c", "")]
    assert (again.producer_name, again.doc_string) == ("me", "about")
    assert again.HasField("model_version")


def test_a_sparse_initializer_survives() -> None:
    values = numpy_helper.from_array(np.ones(2, np.float32), "s")
    indices = numpy_helper.from_array(np.array([0, 5], np.int64), "i")
    sparse = helper.make_sparse_tensor(values, indices, [8])
    again = round_trip(one_node(sparse_initializer=[sparse]))
    assert again.graph.sparse_initializer[0] == sparse


def test_the_domain_ai_onnx_is_the_empty_one() -> None:
    proto = one_node()
    proto.opset_import[0].domain = "ai.onnx"
    proto.graph.node[0].domain = "ai.onnx"
    model = read_model(memoryview(proto.SerializeToString()))
    assert model.opset_imports == {"": 17}
    assert model.graph.nodes[0].domain == ""


def broken(**fields: Any) -> bytes:
    tensor = TensorProto(**{"name": "t", "data_type": 1, "dims": [2], **fields})
    return one_node(initializer=[tensor]).SerializeToString()


def external(**entries: str) -> bytes:
    tensor = TensorProto(name="t", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return one_node(initializer=[tensor]).SerializeToString()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "model.graph: no graph"),
        (b"\x08\x07", "model.graph: no graph"),
        (b"\x3a\xff", "unterminated at byte"),
        (b"\x3a\x7f", "127 bytes announced"),
        (b"\x0b\x0c", "wire type 3"),
        (b"\x00\x01", "field number 0"),
        (b"\x80" * 20, "unterminated"),
        (broken(raw_data=b"1234567"), r"tensor 't'.data: 7 bytes, expected 8 for \(2,\)"),
        (broken(raw_data=b"123456789"), r"tensor 't'.data: 9 bytes, expected 8 for \(2,\)"),
        (broken(raw_data=b"1234567", dims=[2**62, 2**62]), "data: 7 bytes"),
        (broken(dims=[-1]), "no negative dimension"),
        (broken(data_type=99), "data_type: 99"),
        (broken(data_type=0), "data_type: 0"),
        (broken(float_data=[1.0]), "4 bytes, expected 8"),
        (broken(int32_data=[1, 2]), "data: in int32_data, expected in float_data"),
        (broken(data_type=8, string_data=[b"a"]), "1 strings, expected 2"),
        (broken(dims=[1] * 65, raw_data=b"1234"), "rank 65"),
        (external(offset="0"), "external_data.location: nothing"),
        (external(location="w", offset="-1"), "external_data.offset: '-1'"),
        (external(location="w", length="1e3"), "external_data.length: '1e3'"),
    ],
)
def test_bytes_that_are_no_model_are_refused(data: bytes, text: str) -> None:
    with pytest.raises(FormatError, match=text) as found:
        read_model(memoryview(data), file="m.onnx")
    assert found.value.file == "m.onnx"


def test_names_that_are_no_text_are_refused() -> None:
    data = one_node().SerializeToString().replace(b"doc", b"\xff\xfe\xfd")
    with pytest.raises(FormatError, match=r"node: .* expected UTF-8 text"):
        read_model(memoryview(data))


@pytest.mark.parametrize("depth", [70, 400, 5000])
def test_graphs_nested_without_end_are_refused(depth: int) -> None:
    graph = b""
    for _ in range(depth):
        attribute = b"\x0a\x01g\x32" + varint(len(graph)) + graph + b"\xa0\x01\x05"
        node = b"\x2a" + varint(len(attribute)) + attribute
        graph = b"\x0a" + varint(len(node)) + node
    with pytest.raises(FormatError, match="subgraphs nested over 32 deep"):
        read_model(memoryview(b"\x3a" + varint(len(graph)) + graph))


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def test_two_gibibytes_are_not_written() -> None:
    big = memoryview(bytearray(1 << 20)).cast("B")
    model = read_model(memoryview(one_node().SerializeToString()))
    tensors = {f"t{i}": Tensor(f"t{i}", DataType.UINT8, (1 << 20,), big) for i in range(2048)}
    with pytest.raises(FormatError, match=r"at most 2147483647 \(protobuf\)"):
        encode_model(replace(model, graph=replace(model.graph, initializers=tensors)))

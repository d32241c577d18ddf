"""What a model file may say once, where a tensor's elements belong, how large numbers are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from ctx_formats.errors import FormatError
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import encode_model, model_bytes
from ctx_formats.onnx_model import Attribute, AttributeType, GraphDef, Model, Node, Tensor
from ctx_formats.tensor_size import tensor_bytes

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "N"])


def model(*nodes: onnx.NodeProto, **graph: Any) -> onnx.ModelProto:
    made = helper.make_graph(list(nodes), "g", [X], [X], **graph)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])


def read(proto: onnx.ModelProto) -> Model:
    return read_model(memoryview(proto.SerializeToString()))


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(number: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return varint(number << 3 | 2) + varint(len(body)) + body


def without_empty_texts(proto: Any) -> Any:
    """proto3 cannot tell an empty text from none; onnx's proto2 can."""
    for field, value in proto.ListFields():
        if field.message_type is not None:
            for item in value if field.is_repeated else [value]:
                without_empty_texts(item)
        elif not field.is_repeated and value in ("", b"") and field.name != "s":
            proto.ClearField(field.name)
    return proto


def whole_files() -> list[Path]:
    return sorted(DATA.glob("light/*.onnx")) + sorted(DATA.glob("simple/*/model.onnx"))


@pytest.mark.parametrize("path", whole_files(), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_field_of_a_model_survives(path: Path) -> None:
    """Field by field, through onnx's own classes; typed data becomes raw data of equal value."""
    original = onnx.load(path)
    again = onnx.load_model_from_string(model_bytes(read_model(memoryview(path.read_bytes()))))
    for proto in (original, again):
        without_empty_texts(proto)
        for opset in proto.opset_import:
            opset.domain = "" if opset.domain == "ai.onnx" else opset.domain
        for tensor in proto.graph.initializer:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    for mine, theirs in zip(again.graph.node, original.graph.node, strict=True):
        for a, b in zip(mine.attribute, theirs.attribute, strict=True):
            if a.type == AttributeProto.TENSOR:
                np.testing.assert_array_equal(
                    numpy_helper.to_array(a.t), numpy_helper.to_array(b.t)
                )
                a.t.CopyFrom(b.t)
    assert again == original


def test_the_checker_of_onnx_accepts_what_we_write() -> None:
    proto = model(
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Add", ["a", "w"], ["y"]),
        initializer=[numpy_helper.from_array(np.ones(1, np.float32), "w")],
    )
    proto.graph.output[0].name = "y"
    onnx.checker.check_model(model_bytes(read(proto)), full_check=True)


FIELDS = {
    "float_data": [1.0, 2.0],
    "int32_data": [1, 2],
    "int64_data": [1, 2],
    "double_data": [1.0, 2.0],
    "uint64_data": [1, 2],
}
RIGHT: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.INT32: "int32_data",
    TensorProto.FLOAT16: "int32_data",
    TensorProto.INT64: "int64_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("data_type", RIGHT)
def test_elements_are_taken_from_the_field_of_their_type_alone(data_type: int, field: str) -> None:
    """onnx.proto: "the data_type field MUST be"; bytes of one type are not read as another."""
    tensor = TensorProto(name="t", data_type=data_type, dims=[2], **{field: FIELDS[field]})
    proto = model(initializer=[tensor])
    if field == RIGHT[data_type]:
        assert len(read(proto).graph.initializers["t"].data) == tensor_bytes(data_type, [2])
        return
    with pytest.raises(FormatError, match=f"tensor 't'.data: in {field}, expected in "):
        read(proto)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"data_type": 1, "raw_data": b"1234", "float_data": [1.0]}, "data: in 2 fields"),
        ({"data_type": 1, "int32_data": [1], "float_data": [1.0]}, "data: in 2 fields"),
        ({"data_type": 8, "raw_data": b"1234"}, "string_data: 0 strings, expected 1"),
        ({"data_type": 1, "string_data": [b"a"]}, "string_data: in a tensor of type 1"),
        ({"data_type": 2, "int32_data": [256]}, "data: element 256, expected 8 bits"),
        ({"data_type": 3, "int32_data": [-129]}, "data: element -129, expected 8 bits"),
        ({"data_type": 10, "int32_data": [70000]}, "data: element 70000, expected 16 bits"),
        ({"data_type": 12, "uint64_data": [1 << 32]}, "element 4294967296, expected 32 bits"),
        ({"data_type": 27, "int32_data": [64]}, "data: element 64, expected 6 bits"),
        ({"data_type": 27, "int32_data": [1, 2]}, "data: 2 elements, expected 1"),
        ({"data_type": 1, "data_location": 1}, "external_data.location: nothing"),
    ],
)
def test_elements_that_do_not_fit_are_refused(fields: dict[str, Any], text: str) -> None:
    tensor = TensorProto(name="t", dims=[1], **fields)
    with pytest.raises(FormatError, match=text):
        read(model(initializer=[tensor]))


@pytest.mark.parametrize(
    "data_type",
    [
        TensorProto.UINT2,
        TensorProto.INT2,
        TensorProto.FLOAT4E2M1,
        TensorProto.FLOAT8E8M0,
        TensorProto.FLOAT6E2M3,
        TensorProto.FLOAT6E3M2,
    ],
)
def test_the_newest_types_are_packed_as_onnx_packs_them(data_type: int) -> None:
    typed = helper.make_tensor("t", data_type, [5], [1.0, 0.0, 1.0, 1.0, 0.0])
    raw = numpy_helper.from_array(numpy_helper.to_array(typed), "t")
    assert len(raw.raw_data) == tensor_bytes(data_type, [5])
    for tensor in (typed, raw):
        found = read(model(initializer=[tensor])).graph.initializers["t"]
        assert bytes(found.data) == raw.raw_data


def test_booleans_are_one_or_zero() -> None:
    tensor = TensorProto(name="t", data_type=TensorProto.BOOL, dims=[3], int32_data=[0, 2, 1])
    assert bytes(read(model(initializer=[tensor])).graph.initializers["t"].data) == b"\0\1\1"


@pytest.mark.parametrize("count", [3, 100_000])
def test_unpacked_elements_are_read_as_packed_ones(count: int) -> None:
    """protobuf readers take both; long fields are read in pieces."""
    values = [(i * 2654435761) % 2**63 for i in range(count)]
    head = b"\x08" + varint(count) + b"\x10\x07B\x01t"
    packed = message(7, b"".join(varint(v) for v in values))
    single = b"".join(b"\x38" + varint(v) for v in values)
    for field in (packed, single):
        data = message(7, message(5, head, field))
        found = read_model(memoryview(data)).graph.initializers["t"]
        assert bytes(found.data) == np.array(values, np.int64).tobytes()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (message(7) + message(7), "model: twice"),
        (message(7, message(11, message(2), message(2))), "value_info.type: twice"),
        (message(7, message(11, message(2, message(1), message(4)))), "type: twice"),
        (message(7, message(11, message(2, message(1, message(2), message(2))))), "type.shape"),
        (message(7, message(11, message(2, message(4, message(1), message(1))))), "elem_type"),
        (message(7, message(11, message(2, message(5, message(2), message(2))))), "value_type"),
        (message(7, message(15, message(1, b"\x10\x01\x08\x00"))), "1 values, 0 indices"),
        (message(7, message(1, message(5))), "attribute.name: none"),
        (
            message(7, message(1, message(5, message(1, b"a"), message(6), message(6)))),
            "attribute 'a': 2 values, expected one GRAPH",
        ),
        (
            message(7, message(1, message(5, message(1, b"a"), b"\xa0\x01\x04"))),
            "attribute 'a': 0 values, expected one TENSOR",
        ),
        (
            message(7, message(1, message(5, message(1, b"a"), b"\x18\x01\xa0\x01\x01"))),
            "attribute 'a': INT in it, expected FLOAT",
        ),
        (
            message(7, message(1, message(5, message(1, b"a"), b"\xa0\x01\x0f"))),
            "attribute 'a'.type: 15, expected 0 to 14",
        ),
        (message(7, message(1, message(5, message(7, b"123")))), "a multiple of 4"),
        (message(7, message(5, b"\x70\x02\x10\x01")), "data_location: 2"),
        (b"\xfa\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "tag: "),
        (b"\x3a\x80", "unterminated"),
        (message(7, message(5, b"\x3a\x0b" + b"\xff" * 11, b"\x10\x07")), "over ten bytes"),
        (message(7, message(5, b"\x3a\x02\xff\xff", b"\x08\x01\x10\x07")), "unterminated"),
    ],
)
def test_what_may_be_there_once_is_not_merged(data: bytes, text: str) -> None:
    with pytest.raises(FormatError, match=text):
        read_model(memoryview(data))


def test_an_attribute_twice_is_refused() -> None:
    node = helper.make_node("Op", ["x"], ["y"], a=1)
    node.attribute.append(helper.make_attribute("a", 2))
    with pytest.raises(FormatError, match="attribute 'a': twice"):
        read(model(node))


def test_equal_attributes_of_two_nodes_stay_equal() -> None:
    """The reader remembers attributes by their bytes."""
    nodes = [helper.make_node("Op", ["x"], [f"y{i}"], k=[3, 3], t="s", f=0.5) for i in range(3)]
    nodes.append(helper.make_node("Op", ["x"], ["z"], k=[3, 4], t="s", f=0.25))
    found = read(model(*nodes)).graph.nodes
    assert found[0].attributes == found[2].attributes
    assert found[3].attributes["k"].value == (3, 4)
    assert found[3].attributes["f"].value == 0.25


def test_equal_constants_of_two_nodes_keep_their_own_bytes() -> None:
    tensor = numpy_helper.from_array(np.ones(2, np.float32))
    proto = model(*(helper.make_node("Constant", [], [n], value=tensor) for n in "ab"))
    a, b = (node.attributes["value"].value for node in read(proto).graph.nodes)
    assert isinstance(a, Tensor)
    assert a == b
    assert a is not b


def test_a_caller_deep_in_its_stack_gets_a_format_error() -> None:
    graph = b""
    for _ in range(30):
        graph = message(1, message(5, message(1, b"g"), message(6, graph), b"\xa0\x01\x05"))
    data = memoryview(message(7, graph))

    def deep(frames: int) -> Model:
        return deep(frames - 1) if frames else read_model(data)

    assert read_model(data).graph.nodes
    used = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    with pytest.raises(FormatError, match="nested too deep for this call stack"):
        deep(sys.getrecursionlimit() - used - 60)


def test_a_view_of_other_elements_is_read_as_bytes() -> None:
    data = model().SerializeToString()
    padded = data + b"\xf8\x07\x00" * (len(data) % 4)  # field 127, which nobody knows
    assert len(padded) % 4 == 0
    assert read_model(memoryview(padded).cast("I")).graph.name == "g"


def one_attribute(attribute: Attribute) -> Model:
    node = Node("Op", ("x",), ("y",), attributes={attribute.name: attribute})
    graph = GraphDef(name="g", nodes=(node,), inputs=(), outputs=())
    return Model(graph=graph, ir_version=8, opset_imports={"": 17})


@pytest.mark.parametrize(
    ("attribute", "error", "text"),
    [
        (Attribute("a", AttributeType.INT, 1 << 64), FormatError, "integer: .* expected 64 bits"),
        (Attribute("a", AttributeType.INTS, (-(1 << 63) - 1,)), FormatError, "64 bits"),
        (Attribute("a", AttributeType.FLOAT, 1e300), FormatError, "float: 1e\\+300"),
        (Attribute("a", AttributeType.FLOATS, (0.0, -1e300)), FormatError, "float: -1e\\+300"),
        (Attribute("a", AttributeType.FLOAT, "1"), TypeError, "a FLOAT attribute holds str"),
        (Attribute("a", AttributeType.INT, "1"), TypeError, "an INT attribute holds str"),
        (Attribute("a", AttributeType.STRING, "1"), TypeError, "a STRING attribute holds str"),
        (Attribute("a", AttributeType.TENSOR, "1"), TypeError, "not an ONNX type: '1'"),
    ],
)
def test_a_value_that_the_format_cannot_hold_is_not_written(
    attribute: Attribute, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        encode_model(one_attribute(attribute))


def test_a_tensor_over_other_elements_is_written_whole() -> None:
    numbers = np.arange(3000, dtype=np.float32)
    tensor = Tensor("t", 1, (3000,), memoryview(numbers))
    made = one_attribute(Attribute("a", AttributeType.TENSOR, tensor))
    proto = onnx.load_model_from_string(model_bytes(made))
    np.testing.assert_array_equal(
        numpy_helper.to_array(proto.graph.node[0].attribute[0].t), numbers
    )
    assert sum(map(len, encode_model(made))) == len(model_bytes(made))

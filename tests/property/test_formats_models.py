"""Model files, generated and damaged: one meaning for us and for protobuf, or a FormatError."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from ctx_formats.errors import FormatError
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import encode_model, model_bytes
from ctx_formats.onnx_model import (
    Attribute,
    AttributeType,
    DataType,
    ExternalData,
    FunctionDef,
    GraphDef,
    MapType,
    Model,
    Node,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    Tensor,
    TensorType,
    ValueInfo,
)
from ctx_formats.tensor_size import tensor_bytes
from ctx_formats.wire import as_int64, read_packed_varints, read_varint, write_varint

names = st.text(st.characters(codec="utf-8"), max_size=6)
some_names = st.text("abcé/.0", min_size=1, max_size=5)
integers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(width=32, allow_nan=False)
dims = st.none() | st.integers(-1, 2**63 - 1) | st.text("NM", min_size=1, max_size=2)
shapes = st.none() | st.lists(dims, max_size=3).map(tuple)
element_types = st.sampled_from([t for t in DataType if t not in (0, DataType.STRING)])
dense_types = st.builds(TensorType, st.integers(0, 28), shapes)
leaf_types = (
    dense_types
    | st.builds(SparseTensorType, st.integers(0, 28), shapes)
    | st.builds(OpaqueType, names, some_names)
)
types = st.recursive(
    leaf_types,
    lambda inner: (
        st.builds(SequenceType, inner)
        | st.builds(OptionalType, inner)
        | st.builds(MapType, st.integers(0, 28), inner)
    ),
    max_leaves=4,
)
infos = st.builds(ValueInfo, some_names, st.none() | types, names)


@st.composite
def numeric_tensors(draw: st.DrawFn) -> Tensor:
    data_type = draw(element_types)
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    size = tensor_bytes(data_type, shape)
    data = memoryview(draw(st.binary(min_size=size, max_size=size)))
    return Tensor(draw(some_names), int(data_type), shape, data, draw(names))


string_tensors = st.lists(st.binary(max_size=5), max_size=3).map(
    lambda texts: Tensor("s", int(DataType.STRING), (len(texts),), tuple(texts))
)
external_tensors = st.builds(
    lambda offset, length, checksum: Tensor(
        "e", 1, (2, 3), ExternalData("w.bin", offset, length, checksum)
    ),
    st.integers(0, 2**63 - 1),
    st.none() | st.integers(0, 2**63 - 1),
    some_names,
)
tensors = numeric_tensors() | string_tensors | external_tensors
sparse_tensors = st.builds(SparseTensor, numeric_tensors(), numeric_tensors(), st.just((2, 2**40)))


def values(graphs: st.SearchStrategy[GraphDef]) -> dict[AttributeType, st.SearchStrategy[Any]]:
    def several(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(one, max_size=3).map(tuple)

    return {
        AttributeType.FLOAT: floats,
        AttributeType.INT: integers,
        AttributeType.STRING: st.binary(max_size=8),
        AttributeType.TENSOR: tensors,
        AttributeType.GRAPH: graphs,
        AttributeType.SPARSE_TENSOR: sparse_tensors,
        AttributeType.TYPE_PROTO: types,
        AttributeType.FLOATS: several(floats),
        AttributeType.INTS: several(integers),
        AttributeType.STRINGS: several(st.binary(max_size=4)),
        AttributeType.TENSORS: several(tensors),
        AttributeType.GRAPHS: several(graphs),
        AttributeType.SPARSE_TENSORS: several(sparse_tensors),
        AttributeType.TYPE_PROTOS: several(types),
    }


def nodes(graphs: st.SearchStrategy[GraphDef]) -> st.SearchStrategy[Node]:
    attributes = st.one_of(
        *(
            st.builds(Attribute, some_names, st.just(kind), value, doc_string=names)
            for kind, value in values(graphs).items()
        )
    )
    return st.builds(
        Node,
        some_names,
        st.lists(names, max_size=3).map(tuple),
        st.lists(names, max_size=2).map(tuple),
        names,
        st.sampled_from(["", "com.microsoft"]),
        st.lists(attributes, max_size=2).map(lambda found: {a.name: a for a in found}),
        names,
        names,
        st.dictionaries(some_names, names, max_size=1),
    )


def by_name(found: list[Any]) -> dict[str, Any]:
    return {item.name: item for item in found}


def graphs_of(inner: st.SearchStrategy[GraphDef]) -> st.SearchStrategy[GraphDef]:
    return st.builds(
        GraphDef,
        name=names,
        nodes=st.lists(nodes(inner), max_size=2).map(tuple),
        inputs=st.lists(infos, max_size=2).map(tuple),
        outputs=st.lists(infos, max_size=1).map(tuple),
        initializers=st.lists(tensors, max_size=2).map(by_name),
        sparse_initializers=st.lists(sparse_tensors, max_size=1).map(
            lambda found: {item.values.name: item for item in found}
        ),
        value_info=st.lists(infos, max_size=1).map(by_name),
        doc_string=names,
        metadata_props=st.dictionaries(some_names, names, max_size=1),
    )


empty_graphs = st.builds(
    GraphDef, name=some_names, nodes=st.just(()), inputs=st.just(()), outputs=st.just(())
)
graphs = graphs_of(graphs_of(empty_graphs))
functions = some_names.map(
    lambda name: FunctionDef(
        name=name,
        domain="local",
        overload="",
        encoded=memoryview(
            helper.make_function("local", name, ["a"], ["b"], [], []).SerializeToString()
        ),
    )
)
models = st.builds(
    Model,
    graph=graphs,
    ir_version=st.integers(0, 14),
    opset_imports=st.dictionaries(
        st.sampled_from(["", "com.microsoft"]), st.integers(0, 30), max_size=2
    ),
    producer_name=names,
    producer_version=names,
    domain=names,
    model_version=st.none() | integers,
    doc_string=names,
    metadata_props=st.dictionaries(some_names, names, max_size=2),
    functions=st.lists(functions, max_size=1).map(tuple),
)


@settings(max_examples=60)
@given(models)
def test_every_model_survives_our_bytes_and_those_of_protobuf(model: Model) -> None:
    ours = model_bytes(model)
    assert sum(map(len, encode_model(model))) == len(ours)
    assert read_model(memoryview(ours)) == model
    theirs = onnx.load_model_from_string(ours).SerializeToString()
    assert read_model(memoryview(theirs)) == model


@given(st.integers(-(2**63), 2**64 - 1), st.binary(max_size=3))
def test_every_integer_of_64_bits_survives(value: int, after: bytes) -> None:
    data = write_varint(value)
    found, at = read_varint(memoryview(data + after), 0, len(data) + len(after))
    assert at == len(data) <= 10
    assert value in (found, as_int64(found))


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 127), max_size=40))
def test_packed_integers_are_read_in_order(expected: list[int]) -> None:
    data = b"".join(write_varint(value) for value in expected)
    chunks = read_packed_varints(memoryview(data), 0, len(data))
    assert [value for chunk in chunks for value in chunk] == expected


def rich_file() -> bytes:
    """A file in which every kind of field occurs."""
    inner = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "inner", [], [])
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "s"),
        numpy_helper.from_array(np.zeros(1, np.int64), "i"),
        [8],
    )
    node = helper.make_node(
        "Op",
        ["x", "", "w"],
        ["y"],
        name="n",
        domain="com.microsoft",
        f=0.5,
        i=-3,
        s="text",
        floats=[1.0, 2.0],
        ints=[1, -1, 300],
        strings=["a", "b"],
        t=helper.make_tensor("c", TensorProto.INT32, [2], [1, -1]),
        g=inner,
        tp=helper.make_tensor_type_proto(1, [1, "N", None]),
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2])
    y = helper.make_tensor_sequence_value_info("y", TensorProto.INT64, None)
    graph = helper.make_graph(
        [node],
        "graph",
        [x],
        [y],
        [
            numpy_helper.from_array(np.arange(4, dtype=np.float32), "w"),
            helper.make_tensor("v", TensorProto.INT64, [3], [1, -2, 300]),
            helper.make_tensor("u", TensorProto.STRING, [2], [b"p", b"qq"]),
        ],
        value_info=[x],
        sparse_initializer=[sparse],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    proto.producer_name = "tests"
    helper.set_model_props(proto, {"key": "value"})
    function = helper.make_function("d", "F", ["a"], ["b"], [], [helper.make_opsetid("", 17)])
    proto.functions.append(function)
    return proto.SerializeToString()


VALID = rich_file()


def check(data: bytes) -> None:
    """A FormatError; or a model that can be written, and in which protobuf sees the same."""
    try:
        model = read_model(memoryview(data))
    except FormatError:
        return
    written = b"".join(encode_model(model))
    assert b"".join(encode_model(read_model(memoryview(written)))) == written
    try:
        proto = onnx.load_model_from_string(data)
    except DecodeError:
        return  # in a part that we do not look into
    assert [seen(node) for node in model.graph.nodes] == [seen(n) for n in proto.graph.node]
    assert [i.name for i in model.graph.inputs] == [i.name for i in proto.graph.input]
    last = {tensor.name: tensor for tensor in proto.graph.initializer}  # as ONNX Runtime
    assert list(model.graph.initializers) == list(last)
    for name, tensor in last.items():
        mine = model.graph.initializers[name]
        assert (mine.data_type, mine.dims) == (tensor.data_type, tuple(tensor.dims))


def seen(node: Node | onnx.NodeProto) -> tuple[object, ...]:
    if isinstance(node, Node):
        kinds = [(a.name, int(a.type)) for a in node.attributes.values()]
        return node.op_type, node.inputs, node.outputs, kinds
    kinds = [(a.name, a.type or in_use(a)) for a in node.attribute]
    return node.op_type, tuple(node.input), tuple(node.output), kinds


def in_use(attribute: onnx.AttributeProto) -> int:
    """Before IR version 2 an attribute had no type but that of the field in use."""
    fields = {
        "f": 1,
        "i": 2,
        "s": 3,
        "t": 4,
        "g": 5,
        "floats": 6,
        "ints": 7,
        "strings": 8,
        "tp": 13,
    }
    used = [fields[field.name] for field, _ in attribute.ListFields() if field.name in fields]
    return used[0] if len(used) == 1 else 0


def test_a_file_cut_anywhere_is_refused_or_whole_in_what_it_says() -> None:
    for size in range(len(VALID)):
        check(VALID[:size])


def test_a_file_with_any_byte_changed_is_refused_or_means_one_thing() -> None:
    for at in range(len(VALID)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            check(VALID[:at] + bytes([VALID[at] ^ mask]) + VALID[at + 1 :])


@settings(max_examples=300)
@given(
    at=st.integers(0, len(VALID)),
    put=st.binary(max_size=12) | st.integers(0, 2**64 - 1).map(write_varint),
    cut=st.integers(0, 12),
)
def test_a_file_overwritten_anywhere_is_refused_or_means_one_thing(
    at: int, put: bytes, cut: int
) -> None:
    check(VALID[:at] + put + VALID[at + cut :])


@settings(max_examples=100)
@given(at=st.integers(0, len(VALID)), start=st.integers(0, len(VALID)), size=st.integers(0, 60))
def test_a_file_with_a_part_of_it_copied_elsewhere_is_refused_or_means_one_thing(
    at: int, start: int, size: int
) -> None:
    check(VALID[:at] + VALID[start : start + size] + VALID[at:])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_give_a_format_error_or_a_model(data: bytes) -> None:
    check(data)
    check(b"\x3a" + write_varint(len(data)) + data)


@given(st.integers(0, 2**64 - 1))
def test_types_are_numbers_of_32_bits_as_for_protobuf(value: int) -> None:
    element = b"\x08" + write_varint(value)
    tensor = b"\x0a" + write_varint(len(element)) + element
    info = b"\x12" + write_varint(len(tensor)) + tensor
    graph = b"\x5a" + write_varint(len(info)) + info
    data = b"\x3a" + write_varint(len(graph)) + graph
    (found,) = read_model(memoryview(data)).graph.inputs
    assert isinstance(found.type, TensorType)
    proto = onnx.load_model_from_string(data)
    assert found.type.elem_type == proto.graph.input[0].type.tensor_type.elem_type

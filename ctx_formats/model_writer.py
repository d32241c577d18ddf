"""A Model to ModelProto bytes, deterministic, tensors passed through without a copy."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, cast

from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import (
    Attribute,
    AttributeType,
    ExternalData,
    GraphDef,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    Tensor,
    TensorType,
)
from ctx_formats.segments import Segments, pack_floats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Model, Node, ValueInfo, ValueType

PROTOBUF_LIMIT = (1 << 31) - 1
"""protobuf refuses messages of 2 GiB and more, and so does every reader of ONNX files."""
_MESSAGES = {
    AttributeType.TENSOR: 5,
    AttributeType.GRAPH: 6,
    AttributeType.TENSORS: 10,
    AttributeType.GRAPHS: 11,
    AttributeType.TYPE_PROTO: 14,
    AttributeType.TYPE_PROTOS: 15,
    AttributeType.SPARSE_TENSOR: 22,
    AttributeType.SPARSE_TENSORS: 23,
}


def encode_model(model: Model) -> Sequence[bytes | memoryview]:
    """The file as pieces to be written one after the other.

    Raises:
        FormatError: 2 GiB or more; the caller has to move data into another file.
    """
    out = Segments()
    out.integer(1, model.ir_version)
    for number, text in ((2, model.producer_name), (3, model.producer_version), (4, model.domain)):
        out.text(number, text)
    if model.model_version is not None:
        out.integer(5, model.model_version, always=True)
    out.text(6, model.doc_string)
    out.message(7, _graph(model.graph))
    for domain, version in model.opset_imports.items():
        entry = Segments()
        entry.text(1, domain)
        entry.integer(2, version)
        out.message(8, entry)
    _metadata(out, 14, model.metadata_props)
    for function in model.functions:
        out.data(25, function.encoded)
    if out.size > PROTOBUF_LIMIT:
        raise FormatError("model", f"{out.size} bytes", f"at most {PROTOBUF_LIMIT} (protobuf)")
    return out.pieces


def model_bytes(model: Model) -> bytes:
    """The file in one piece; copies every tensor once."""
    return b"".join(encode_model(model))


def _metadata(out: Segments, number: int, entries: Mapping[str, str]) -> None:
    for key, value in entries.items():
        entry = Segments()
        entry.text(1, key)
        entry.text(2, value)
        out.message(number, entry)


def _graph(graph: GraphDef) -> Segments:
    out = Segments()
    for node in graph.nodes:
        out.message(1, _node(node))
    out.text(2, graph.name)
    for tensor in graph.initializers.values():
        out.message(5, _tensor(tensor))
    out.text(10, graph.doc_string)
    for number, infos in (
        (11, graph.inputs),
        (12, graph.outputs),
        (13, tuple(graph.value_info.values())),
    ):
        for info in infos:
            out.message(number, encode_value_info(info))
    for sparse in graph.sparse_initializers.values():
        out.message(15, _sparse(sparse))
    _metadata(out, 16, graph.metadata_props)
    return out


def _node(node: Node) -> Segments:
    out = Segments()
    for name in node.inputs:
        out.text(1, name, always=True)
    for name in node.outputs:
        out.text(2, name, always=True)
    out.text(3, node.name)
    out.text(4, node.op_type)
    for attribute in node.attributes.values():
        out.message(5, _attribute(attribute))
    out.text(6, node.doc_string)
    out.text(7, node.domain)
    out.text(8, node.overload)
    _metadata(out, 9, node.metadata_props)
    return out


def _tensor(tensor: Tensor) -> Segments:
    out = Segments()
    out.integers(1, tensor.dims)
    out.integer(2, tensor.data_type)
    if isinstance(tensor.data, tuple):
        for text in tensor.data:
            out.data(6, text)
    out.text(8, tensor.name)
    if isinstance(tensor.data, memoryview):
        out.data(9, tensor.data)
    out.text(12, tensor.doc_string)
    if isinstance(tensor.data, ExternalData):
        _metadata(out, 13, _external(tensor.data))
        out.integer(14, 1)
    return out


def _external(data: ExternalData) -> dict[str, str]:
    entries = {"location": data.location, "offset": str(data.offset)}
    if data.length is not None:
        entries["length"] = str(data.length)
    if data.checksum:
        entries["checksum"] = data.checksum
    return entries


def _sparse(sparse: SparseTensor) -> Segments:
    out = Segments()
    out.message(1, _tensor(sparse.values))
    out.message(2, _tensor(sparse.indices))
    out.integers(3, sparse.dims)
    return out


def _attribute(attribute: Attribute) -> Segments:
    out = Segments()
    out.text(1, attribute.name)
    if not attribute.ref_attr_name:
        _value(out, attribute)
    out.text(13, attribute.doc_string)
    out.integer(20, attribute.type)
    out.text(21, attribute.ref_attr_name)
    return out


def _value(out: Segments, attribute: Attribute) -> None:
    value = attribute.value
    items = value if isinstance(value, tuple) else (value,)
    match attribute.type:
        case AttributeType.FLOAT:
            out.single(2, _float(value))
        case AttributeType.INT:
            out.integer(3, _int(value), always=True)
        case AttributeType.STRING:
            out.data(4, _bytes(value))
        case AttributeType.FLOATS:
            out.data(7, pack_floats(_floats(items)))
        case AttributeType.INTS:
            out.integers(8, _ints(items))
        case AttributeType.STRINGS:
            for item in items:
                out.data(9, _bytes(item))
        case AttributeType.UNDEFINED:
            pass
        case _:
            for item in items:
                out.message(_MESSAGES[attribute.type], _message(item))


def _ints(values: Sequence[object]) -> Sequence[int]:
    """The values, which trees of decisions have by the million, checked by their types."""
    return cast("Sequence[int]", values) if {*map(type, values)} <= {int} else [*map(_int, values)]


def _floats(values: Sequence[object]) -> Sequence[float]:
    exact = {*map(type, values)} <= {float, int}
    return cast("Sequence[float]", values) if exact else [*map(_float, values)]


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"an INT attribute holds {type(value).__name__}")
    return value


def _float(value: object) -> float:
    if not isinstance(value, float | int):
        raise TypeError(f"a FLOAT attribute holds {type(value).__name__}")
    return value


def _bytes(value: object) -> bytes | memoryview:
    if not isinstance(value, bytes | memoryview):
        raise TypeError(f"a STRING attribute holds {type(value).__name__}")
    return value


def _message(value: object) -> Segments:
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, GraphDef):
        return _graph(value)
    if isinstance(value, SparseTensor):
        return _sparse(value)
    return encode_type(value)


def encode_value_info(info: ValueInfo) -> Segments:
    """Encode a ValueInfoProto."""
    out = Segments()
    out.text(1, info.name)
    if info.type is not None:
        out.data(2, _type_bytes(info.type))
    out.text(3, info.doc_string)
    return out


@lru_cache(maxsize=1024)
def _type_bytes(value: ValueType) -> bytes:
    """A model has the same types for hundreds of values."""
    return b"".join(encode_type(value).pieces)


def encode_type(value: object) -> Segments:
    """A TypeProto; None gives an empty one."""
    out = Segments()
    match value:
        case TensorType():
            out.message(1, _tensor_type(value))
        case SparseTensorType():
            out.message(8, _tensor_type(value))
        case SequenceType():
            out.message(4, _element(value.elem))
        case OptionalType():
            out.message(9, _element(value.elem))
        case MapType():
            inner = Segments()
            inner.integer(1, value.key_type)
            inner.message(2, encode_type(value.value))
            out.message(5, inner)
        case OpaqueType():
            inner = Segments()
            inner.text(1, value.domain)
            inner.text(2, value.name)
            out.message(7, inner)
        case None:
            pass
        case _:
            raise TypeError(f"not an ONNX type: {value!r}")
    return out


def _element(value: object) -> Segments:
    out = Segments()
    out.message(1, encode_type(value))
    return out


def _tensor_type(value: TensorType | SparseTensorType) -> Segments:
    out = Segments()
    out.integer(1, value.elem_type)
    if value.shape is not None:
        shape = Segments()
        for dim in value.shape:
            entry = Segments()
            if isinstance(dim, int):
                entry.integer(1, dim, always=True)
            elif dim is not None:
                entry.text(2, dim, always=True)
            shape.message(1, entry)
        out.message(2, shape)
    return out

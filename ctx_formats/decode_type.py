"""TypeProto, TensorShapeProto and ValueInfoProto to values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import (
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    ValueInfo,
)
from ctx_formats.wire import as_int64, decode_text, delimited_tag, int32, read_fields, varint_tag

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Dim, ValueType

MAX_DEPTH = 24
"""Types within types. protobuf reads messages to a depth of 100, a type takes two of them."""

TypeCache = dict[bytes, "ValueType | None"]
"""Encoded types to values: a model repeats the same few hundreds of times."""

_CACHED = 256
_NAME, _TYPE, _DOC = delimited_tag(1), delimited_tag(2), delimited_tag(3)
_TENSOR, _SEQUENCE, _MAP = delimited_tag(1), delimited_tag(4), delimited_tag(5)
_OPAQUE, _SPARSE, _OPTIONAL = delimited_tag(7), delimited_tag(8), delimited_tag(9)
_MEMBERS = {_TENSOR, _SEQUENCE, _MAP, _OPAQUE, _SPARSE, _OPTIONAL}
_NUMBER, _FIRST, _SECOND = varint_tag(1), delimited_tag(1), delimited_tag(2)


def decode_value_info(data: memoryview, start: int, end: int, known: TypeCache) -> ValueInfo:
    """The ValueInfoProto in data[start:end]."""
    name = doc_string = ""
    span: tuple[int, int] | None = None
    for tag, a, b in read_fields(data, start, end):
        if tag == _NAME:
            name = decode_text(data, a, b, "value_info.name")
        elif tag == _TYPE:
            span = once("value_info.type", span, a, b)
        elif tag == _DOC:
            doc_string = decode_text(data, a, b, "value_info.doc_string")
    value_type = None
    if span is not None:
        a, b = span
        key = bytes(data[a:b]) if b - a <= _CACHED else b""
        if key in known:
            value_type = known[key]
        else:
            value_type = decode_type(data, a, b)
            if key:
                known[key] = value_type
    return ValueInfo(name, value_type, doc_string)


def once(field: str, span: tuple[int, int] | None, a: int, b: int) -> tuple[int, int]:
    """[a, b), where nothing was found before.

    protobuf would merge two messages of one field, which no writer produces on purpose: one
    reader that merges and one that takes the last would see two models in one file.

    Raises:
        FormatError: There is a `span` already.
    """
    if span is not None:
        raise FormatError(field, "twice", "once")
    return a, b


def decode_type(data: memoryview, start: int, end: int, depth: int = 0) -> ValueType | None:
    """The TypeProto in data[start:end]; None if it is empty.

    Raises:
        FormatError: Types nest deeper than MAX_DEPTH, or it is two types at once.
    """
    if depth > MAX_DEPTH:
        raise FormatError("type", f"nested over {MAX_DEPTH} deep")
    member = 0
    span: tuple[int, int] | None = None
    for tag, a, b in read_fields(data, start, end):
        if tag in _MEMBERS:
            member, span = tag, once("type", span, a, b)
    if span is None:
        return None
    a, b = span
    if member == _TENSOR:
        return TensorType(*_tensor_type(data, a, b))
    if member == _SPARSE:
        return SparseTensorType(*_tensor_type(data, a, b))
    if member == _SEQUENCE:
        return SequenceType(_element(data, a, b, depth))
    if member == _OPTIONAL:
        return OptionalType(_element(data, a, b, depth))
    return _map_type(data, a, b, depth) if member == _MAP else _opaque(data, a, b)


def _tensor_type(data: memoryview, start: int, end: int) -> tuple[int, tuple[Dim, ...] | None]:
    elem_type = 0
    span: tuple[int, int] | None = None
    for tag, a, b in read_fields(data, start, end):
        if tag == _NUMBER:
            elem_type = int32(a)
        elif tag == _SECOND:
            span = once("type.shape", span, a, b)
    if span is None:
        return elem_type, None
    dims = read_fields(data, *span)
    return elem_type, tuple([_dim(data, a, b) for tag, a, b in dims if tag == _FIRST])


def _dim(data: memoryview, start: int, end: int) -> Dim:
    dim: Dim = None
    for tag, a, b in read_fields(data, start, end):
        if tag == _NUMBER:
            dim = as_int64(a)
        elif tag == _SECOND:
            dim = decode_text(data, a, b, "shape.dim_param")
    return dim


def _element(data: memoryview, start: int, end: int, depth: int) -> ValueType | None:
    span: tuple[int, int] | None = None
    for tag, a, b in read_fields(data, start, end):
        if tag == _FIRST:
            span = once("type.elem_type", span, a, b)
    return decode_type(data, *span, depth + 1) if span else None


def _map_type(data: memoryview, start: int, end: int, depth: int) -> MapType:
    key_type = 0
    span: tuple[int, int] | None = None
    for tag, a, b in read_fields(data, start, end):
        if tag == _NUMBER:
            key_type = int32(a)
        elif tag == _SECOND:
            span = once("type.value_type", span, a, b)
    return MapType(key_type, decode_type(data, *span, depth + 1) if span else None)


def _opaque(data: memoryview, start: int, end: int) -> OpaqueType:
    domain = name = ""
    for tag, a, b in read_fields(data, start, end):
        if tag == _FIRST:
            domain = decode_text(data, a, b, "type.opaque.domain")
        elif tag == _SECOND:
            name = decode_text(data, a, b, "type.opaque.name")
    return OpaqueType(domain, name)

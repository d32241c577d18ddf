"""TypeProto, TensorShapeProto and ValueInfoProto to values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.decode_tensor import decode_text
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
from ctx_formats.wire import LENGTH_DELIMITED, VARINT, read_fields, signed

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Dim, ValueType

MAX_DEPTH = 32
_TENSOR, _SEQUENCE, _MAP, _OPAQUE, _SPARSE, _OPTIONAL = 1, 4, 5, 7, 8, 9


def decode_value_info(data: memoryview, start: int, end: int) -> ValueInfo:
    """The ValueInfoProto in data[start:end]."""
    name = doc_string = ""
    value_type = None
    for number, wire, a, b in read_fields(data, start, end):
        if wire != LENGTH_DELIMITED:
            continue
        if number == 1:
            name = decode_text(data, a, b, "value_info.name")
        elif number == 2:
            value_type = decode_type(data, a, b)
        elif number == 3:
            doc_string = decode_text(data, a, b, "value_info.doc_string")
    return ValueInfo(name, value_type, doc_string)


def decode_type(data: memoryview, start: int, end: int, depth: int = 0) -> ValueType | None:
    """The TypeProto in data[start:end]; None where it is empty.

    Raises:
        FormatError: Types nest deeper than MAX_DEPTH.
    """
    if depth > MAX_DEPTH:
        raise FormatError("type", f"nested over {MAX_DEPTH} deep")
    found: ValueType | None = None
    for number, wire, a, b in read_fields(data, start, end):
        if wire != LENGTH_DELIMITED:
            continue
        if number == _TENSOR:
            found = TensorType(*_tensor_type(data, a, b))
        elif number == _SPARSE:
            found = SparseTensorType(*_tensor_type(data, a, b))
        elif number == _SEQUENCE:
            found = SequenceType(_element(data, a, b, depth))
        elif number == _OPTIONAL:
            found = OptionalType(_element(data, a, b, depth))
        elif number == _MAP:
            found = _map_type(data, a, b, depth)
        elif number == _OPAQUE:
            found = _opaque(data, a, b)
    return found


def _tensor_type(data: memoryview, start: int, end: int) -> tuple[int, tuple[Dim, ...] | None]:
    elem_type = 0
    shape: tuple[Dim, ...] | None = None
    for number, wire, a, b in read_fields(data, start, end):
        if number == 1 and wire == VARINT:
            elem_type = a
        elif number == 2 and wire == LENGTH_DELIMITED:
            shape = tuple(
                _dim(data, c, d)
                for n, w, c, d in read_fields(data, a, b)
                if n == 1 and w == LENGTH_DELIMITED
            )
    return elem_type, shape


def _dim(data: memoryview, start: int, end: int) -> Dim:
    found: Dim = None
    for number, wire, a, b in read_fields(data, start, end):
        if number == 1 and wire == VARINT:
            found = signed(a)
        elif number == 2 and wire == LENGTH_DELIMITED:
            found = decode_text(data, a, b, "shape.dim_param")
    return found


def _element(data: memoryview, start: int, end: int, depth: int) -> ValueType | None:
    for number, wire, a, b in read_fields(data, start, end):
        if number == 1 and wire == LENGTH_DELIMITED:
            return decode_type(data, a, b, depth + 1)
    return None


def _map_type(data: memoryview, start: int, end: int, depth: int) -> MapType:
    key_type = 0
    value = None
    for number, wire, a, b in read_fields(data, start, end):
        if number == 1 and wire == VARINT:
            key_type = a
        elif number == 2 and wire == LENGTH_DELIMITED:
            value = decode_type(data, a, b, depth + 1)
    return MapType(key_type, value)


def _opaque(data: memoryview, start: int, end: int) -> OpaqueType:
    texts = {
        number: decode_text(data, a, b, "type.opaque")
        for number, wire, a, b in read_fields(data, start, end)
        if wire == LENGTH_DELIMITED
    }
    return OpaqueType(texts.get(1, ""), texts.get(2, ""))

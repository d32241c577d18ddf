"""Types and value descriptions to TypeProto and ValueInfoProto."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import (
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
)
from ctx_formats.segments import Segments

if TYPE_CHECKING:
    from ctx_formats.onnx_model import ValueInfo, ValueType


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

"""TensorProto and SparseTensorProto to values, without copying raw data."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import DataType, ExternalData, SparseTensor, Tensor
from ctx_formats.tensor_size import element_bits, element_count, tensor_bytes
from ctx_formats.wire import (
    FIXED32,
    FIXED64,
    LENGTH_DELIMITED,
    VARINT,
    read_fields,
    read_packed_varints,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RANK = 64
_EXTERNAL = 1
_FLOATS, _DOUBLES = 4, 10
_VARINT_FIELDS = (5, 7, 11)  # int32_data, int64_data, uint64_data


@dataclass(slots=True)
class _Parts:
    """The fields of a TensorProto as they come."""

    dims: list[int] = field(default_factory=list)
    data_type: int = 0
    name: str = ""
    doc_string: str = ""
    raw: memoryview | None = None
    strings: list[bytes] = field(default_factory=list)
    packed: list[memoryview] = field(default_factory=list)  # float_data or double_data
    varints: list[int] = field(default_factory=list)
    external: dict[str, str] = field(default_factory=dict)
    location: int = 0


def decode_text(data: memoryview, start: int, end: int, what: str) -> str:
    """UTF-8 text.

    Raises:
        FormatError: It is not UTF-8.
    """
    try:
        return str(data[start:end], "utf-8")
    except UnicodeDecodeError as exc:
        raise FormatError(what, f"{bytes(data[start:end][:40])!r}", "UTF-8 text") from exc


def decode_entry(data: memoryview, start: int, end: int, what: str) -> tuple[str, str]:
    """A StringStringEntryProto."""
    key = value = ""
    for number, wire, a, b in read_fields(data, start, end):
        if wire == LENGTH_DELIMITED and number == 1:
            key = decode_text(data, a, b, f"{what}.key")
        elif wire == LENGTH_DELIMITED and number == 2:
            value = decode_text(data, a, b, f"{what}.value")
    return key, value


def decode_tensor(data: memoryview, start: int, end: int) -> Tensor:
    """The TensorProto in data[start:end]; `raw_data` and packed floats stay views.

    Raises:
        FormatError: Its data does not fit its shape and type, or is in two places.
    """
    parts = _Parts()
    for number, wire, a, b in read_fields(data, start, end):
        _take(parts, data, number, wire, a, b)
    if len(parts.dims) > MAX_RANK:
        raise FormatError(
            f"tensor '{parts.name}'.dims", f"rank {len(parts.dims)}", f"<= {MAX_RANK}"
        )
    try:
        content = _content(parts)
    except FormatError as exc:
        raise FormatError(f"tensor '{parts.name}'.{exc.field}", exc.found, exc.expected) from exc
    return Tensor(parts.name, parts.data_type, tuple(parts.dims), content, parts.doc_string)


def decode_sparse_tensor(data: memoryview, start: int, end: int) -> SparseTensor:
    """The SparseTensorProto in data[start:end]."""
    values = indices = None
    dims: list[int] = []
    for number, wire, a, b in read_fields(data, start, end):
        if number == 1 and wire == LENGTH_DELIMITED:
            values = decode_tensor(data, a, b)
        elif number == 2 and wire == LENGTH_DELIMITED:
            indices = decode_tensor(data, a, b)
        elif number == 3:
            dims += _integers(data, wire, a, b)
    if values is None or indices is None:
        raise FormatError("sparse_tensor", "no values or no indices", "both")
    return SparseTensor(values, indices, tuple(dims))


def _integers(data: memoryview, wire: int, a: int, b: int) -> list[int]:
    if wire == LENGTH_DELIMITED:
        return [signed(v) for v in read_packed_varints(data, a, b)]
    if wire == VARINT:
        return [signed(a)]
    raise FormatError("repeated integer", f"wire type {wire}", "0 or 2")


def _take(parts: _Parts, data: memoryview, number: int, wire: int, a: int, b: int) -> None:  # noqa: C901 - one case a field of TensorProto
    if number == 1:
        parts.dims += _integers(data, wire, a, b)
    elif number == 2 and wire == VARINT:
        parts.data_type = a
    elif number in _VARINT_FIELDS:
        parts.varints += _integers(data, wire, a, b)
    elif number in (_FLOATS, _DOUBLES) and wire in (LENGTH_DELIMITED, FIXED32, FIXED64):
        parts.packed.append(data[a:b])
    elif wire != LENGTH_DELIMITED:
        if number == 14:
            parts.location = a
    elif number == 6:
        parts.strings.append(bytes(data[a:b]))
    elif number == 8:
        parts.name = decode_text(data, a, b, "tensor.name")
    elif number == 9:
        parts.raw = data[a:b]
    elif number == 12:
        parts.doc_string = decode_text(data, a, b, "tensor.doc_string")
    elif number == 13:
        key, value = decode_entry(data, a, b, "tensor.external_data")
        parts.external[key] = value


def _content(parts: _Parts) -> memoryview | tuple[bytes, ...] | ExternalData:
    if parts.location == _EXTERNAL:
        tensor_bytes(parts.data_type, parts.dims)
        return _external(parts.external)
    if parts.data_type == DataType.STRING:
        if len(parts.strings) != element_count(parts.dims):
            raise FormatError(
                "string_data", f"{len(parts.strings)} strings", f"{element_count(parts.dims)}"
            )
        return tuple(parts.strings)
    size = tensor_bytes(parts.data_type, parts.dims)
    if parts.raw is not None:
        found = parts.raw
    elif parts.packed:
        found = parts.packed[0] if len(parts.packed) == 1 else memoryview(b"".join(parts.packed))
    else:
        found = memoryview(_narrowed(parts))
    if len(found) != size:
        raise FormatError("data", f"{len(found)} bytes", f"{size} for {tuple(parts.dims)}")
    return found


def _external(entries: Mapping[str, str]) -> ExternalData:
    location = entries.get("location", "")
    if not location:
        raise FormatError("external_data.location", "nothing", "a relative path")
    return ExternalData(
        location,
        _offset(entries, "offset") or 0,
        _offset(entries, "length"),
        entries.get("checksum", ""),
    )


def _offset(entries: Mapping[str, str], key: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise FormatError(f"external_data.{key}", repr(text[:40]), "a non-negative integer")
    return int(text)


def _narrowed(parts: _Parts) -> bytes:
    """int32_data, int64_data or uint64_data as the little-endian elements of the type.

    onnx.proto: types narrower than 32 bits travel in int32_data, one element (for 4-bit
    types one packed byte) to an entry.
    """
    data_type = parts.data_type
    bits = element_bits(data_type)
    size = max(1, bits // 8)
    if data_type in (DataType.COMPLEX64, DataType.COMPLEX128, DataType.FLOAT, DataType.DOUBLE):
        if parts.varints:
            raise FormatError("data", "integers", "float_data or double_data")
        return b""
    code = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
    mask = (1 << (8 * size)) - 1
    values = [value & mask for value in parts.varints]
    return struct.pack(f"<{len(values)}{code}", *values)

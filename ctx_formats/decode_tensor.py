"""TensorProto and SparseTensorProto to values, without copying raw data."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import DataType, ExternalData, SparseTensor, Tensor
from ctx_formats.tensor_size import element_bits, element_count, tensor_bytes
from ctx_formats.wire import (
    MAX_VARINT_BYTES,
    NO_RUNS,
    as_int64,
    decode_entry,
    decode_text,
    delimited_tag,
    fixed32_tag,
    fixed64_tag,
    int32,
    read_fields,
    read_packed_varints,
    varint_tag,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ctx_formats.wire import Runs

MAX_RANK = 64
_EXTERNAL = 1
_DIM, _DIMS = varint_tag(1), delimited_tag(1)
_DATA_TYPE, _LOCATION = varint_tag(2), varint_tag(14)
_NAME, _RAW, _DOC = delimited_tag(8), delimited_tag(9), delimited_tag(12)
_STRING, _EXTERNAL_ENTRY = delimited_tag(6), delimited_tag(13)
_INTEGERS = (5, 7, 11)
_PACKED = {delimited_tag(number): number for number in (4, 10, *_INTEGERS)}
_SINGLE = {fixed32_tag(4): 4, fixed64_tag(10): 10}
_SINGLE_INTEGER = {varint_tag(number): number for number in _INTEGERS}
_VALUES, _INDICES = delimited_tag(1), delimited_tag(2)
_SPARSE_DIM, _SPARSE_DIMS = varint_tag(3), delimited_tag(3)
_FLOAT_DATA, _INT32_DATA, _INT64_DATA, _DOUBLE_DATA, _UINT64_DATA = 4, 5, 7, 10, 11
_NAMES = {4: "float_data", 5: "int32_data", 7: "int64_data", 10: "double_data", 11: "uint64_data"}
_FIELDS: Mapping[int, int] = {
    DataType.FLOAT: _FLOAT_DATA,
    DataType.COMPLEX64: _FLOAT_DATA,
    DataType.DOUBLE: _DOUBLE_DATA,
    DataType.COMPLEX128: _DOUBLE_DATA,
    DataType.INT64: _INT64_DATA,
    DataType.UINT32: _UINT64_DATA,
    DataType.UINT64: _UINT64_DATA,
}
"""Every other numeric type travels in int32_data."""
_SIX_BITS = (DataType.FLOAT6E2M3, DataType.FLOAT6E3M2)


@dataclass(slots=True)
class _Parts:
    """The fields of a TensorProto as they come.

    Attributes:
        elements: By field number; a piece is packed bytes, or one varint's value.
    """

    dims: list[int] = field(default_factory=list)
    data_type: int = 0
    name: str = ""
    doc_string: str = ""
    raw: memoryview | None = None
    strings: list[bytes] = field(default_factory=list)
    elements: dict[int, list[memoryview | int]] = field(default_factory=dict)
    external: dict[str, str] = field(default_factory=dict)
    location: int = 0


def decode_tensor(data: memoryview, start: int, end: int, runs: Runs = NO_RUNS) -> Tensor:
    """The TensorProto in data[start:end]; `raw_data` and packed floats stay views.

    Args:
        data: The file.
        start: Where the message begins.
        end: Where it ends.
        runs: Bytes of the file that are not in `data`, by where they begin.

    Raises:
        FormatError: Its data does not fit its shape and type, or is in two places.
    """
    parts = _Parts()
    for tag, a, b in read_fields(data, start, end):
        if tag == _RAW:
            parts.raw = runs.get(a, data[a:b])
        elif tag == _DIM:
            parts.dims.append(as_int64(a))
        elif tag == _DATA_TYPE:
            parts.data_type = int32(a)
        elif tag == _NAME:
            parts.name = decode_text(data, a, b, "tensor.name")
        else:
            _take(parts, data, tag, a, b)
    try:
        content = _content(parts)
    except FormatError as exc:
        raise FormatError(f"tensor '{parts.name}'.{exc.field}", exc.found, exc.expected) from exc
    return Tensor(parts.name, parts.data_type, tuple(parts.dims), content, parts.doc_string)


def decode_sparse_tensor(
    data: memoryview, start: int, end: int, runs: Runs = NO_RUNS
) -> SparseTensor:
    """The SparseTensorProto in data[start:end]."""
    values: list[Tensor] = []
    indices: list[Tensor] = []
    dims: list[int] = []
    for tag, a, b in read_fields(data, start, end):
        if tag == _VALUES:
            values.append(decode_tensor(data, a, b, runs))
        elif tag == _INDICES:
            indices.append(decode_tensor(data, a, b, runs))
        elif tag == _SPARSE_DIM:
            dims.append(as_int64(a))
        elif tag == _SPARSE_DIMS:
            dims += _packed_dims(data, a, b)
    if len(values) != 1 or len(indices) != 1:
        counts = f"{len(values)} values, {len(indices)} indices"
        raise FormatError("sparse_tensor", counts, "one of each")
    if len(dims) > MAX_RANK:
        raise FormatError("sparse_tensor.dims", f"rank {len(dims)}", f"<= {MAX_RANK}")
    element_count(dims)  # refuses negative ones
    return SparseTensor(values[0], indices[0], tuple(dims))


def _packed_dims(data: memoryview, start: int, end: int) -> list[int]:
    if end - start > MAX_RANK * MAX_VARINT_BYTES:
        raise FormatError("dims", f"{end - start} bytes", f"rank <= {MAX_RANK}")
    return [as_int64(dim) for chunk in read_packed_varints(data, start, end) for dim in chunk]


def _take(parts: _Parts, data: memoryview, tag: int, a: int, b: int) -> None:
    """The less frequent fields."""
    if tag in _PACKED:
        parts.elements.setdefault(_PACKED[tag], []).append(data[a:b])
    elif tag in _SINGLE:
        parts.elements.setdefault(_SINGLE[tag], []).append(data[a:b])
    elif tag in _SINGLE_INTEGER:
        parts.elements.setdefault(_SINGLE_INTEGER[tag], []).append(a)
    elif tag == _STRING:
        parts.strings.append(bytes(data[a:b]))
    elif tag == _DIMS:
        parts.dims += _packed_dims(data, a, b)
    elif tag == _DOC:
        parts.doc_string = decode_text(data, a, b, "tensor.doc_string")
    elif tag == _LOCATION:
        parts.location = int32(a)
    elif tag == _EXTERNAL_ENTRY:
        key, value = decode_entry(data, a, b, "tensor.external_data")
        parts.external[key] = value


def _content(parts: _Parts) -> memoryview | tuple[bytes, ...] | ExternalData:
    if len(parts.dims) > MAX_RANK:
        raise FormatError("dims", f"rank {len(parts.dims)}", f"<= {MAX_RANK}")
    if parts.location == _EXTERNAL:
        tensor_bytes(parts.data_type, parts.dims)
        return _external(parts.external)
    if parts.location:
        raise FormatError("data_location", str(parts.location), "0 or 1")
    places = (parts.raw is not None) + bool(parts.strings) + len(parts.elements)
    if places > 1:
        raise FormatError("data", f"in {places} fields", "in one")
    if parts.data_type == DataType.STRING:
        return _strings(parts)
    if parts.strings:
        raise FormatError("string_data", f"in a tensor of type {parts.data_type}", "none")
    size = tensor_bytes(parts.data_type, parts.dims)
    if parts.raw is not None:
        content = parts.raw
    elif parts.elements:
        content = packed_elements(parts.data_type, element_count(parts.dims), parts.elements)
    else:
        content = memoryview(b"")
    if len(content) != size:
        raise FormatError("data", f"{len(content)} bytes", f"{size} for {tuple(parts.dims)}")
    return content


def _strings(parts: _Parts) -> tuple[bytes, ...]:
    count = element_count(parts.dims)
    if parts.raw is not None or parts.elements or len(parts.strings) != count:
        raise FormatError("string_data", f"{len(parts.strings)} strings", f"{count}")
    return tuple(parts.strings)


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
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) < 1 << 63):
        raise FormatError(f"external_data.{key}", repr(text[:40]), "an integer, 0 to 2**63 - 1")
    return int(text)


def packed_elements(
    data_type: int, count: int, elements: Mapping[int, Sequence[memoryview | int]]
) -> memoryview:
    """The little-endian elements of a tensor's typed field, packed as raw_data is.

    onnx.proto (IR version 14), TensorProto, says which field a type travels in, and how types
    narrower than the field are packed.

    Args:
        data_type: A numeric DataType.
        count: Elements that the shape announces; nothing is allocated by it.
        elements: The one typed field that the tensor has: its number, its pieces in order
            (packed bytes, or a single varint's value).

    Raises:
        FormatError: The field is not the one for the type, or a value does not fit it.
    """
    ((number, pieces),) = elements.items()
    expected = _FIELDS.get(data_type, _INT32_DATA)
    if number != expected:
        raise FormatError("data", f"in {_NAMES[number]}", f"in {_NAMES[expected]}")
    if expected in (_FLOAT_DATA, _DOUBLE_DATA):
        views = [piece for piece in pieces if isinstance(piece, memoryview)]
        return views[0] if len(views) == 1 else memoryview(b"".join(views))
    packed = _pack_elements(data_type, pieces)
    if data_type in _SIX_BITS:
        packed = _six_bits(packed, count)
    return memoryview(packed)


def _chunks(pieces: Sequence[memoryview | int]) -> Iterator[list[int]]:
    for piece in pieces:
        if isinstance(piece, int):
            yield [piece]
        else:
            yield from read_packed_varints(piece, 0, len(piece))


def _pack_elements(data_type: int, pieces: Sequence[memoryview | int]) -> bytes:
    """One entry to an element; to a byte of elements for types of 4 and 2 bits."""
    size = max(1, element_bits(data_type) // 8)
    code = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
    out = bytearray()
    for values in _chunks(pieces):
        fitting = values
        if data_type == DataType.BOOL:
            fitting = [value != 0 for value in values]
        elif values and max(values) >> 8 * size:
            fitting = [_fit(value, 8 * size) for value in values]
        out += struct.pack(f"<{len(fitting)}{code}", *fitting)
    return bytes(out)


def _fit(value: int, bits: int) -> int:
    """A varint as `bits` bits: negative ones are sign-extended to 64."""
    number = as_int64(value)
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise FormatError("data", f"element {number}", f"{bits} bits")
    return number & (1 << bits) - 1


def _six_bits(codes: bytes, count: int) -> bytes:
    """One 6-bit code to a byte packed to four codes in three bytes, low bits first."""
    if len(codes) != count:
        raise FormatError("data", f"{len(codes)} elements", str(count))
    if codes and max(codes) > 0x3F:
        raise FormatError("data", f"element {max(codes)}", "6 bits")
    out = bytearray()
    for at in range(0, len(codes), 4):
        word = sum(code << 6 * i for i, code in enumerate(codes[at : at + 4]))
        out += word.to_bytes(3, "little")
    return bytes(out[: (6 * count + 7) // 8])

"""AttributeProto to an Attribute."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.decode_type import decode_type
from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import Attribute, AttributeType
from ctx_formats.wire import (
    NO_RUNS,
    as_int64,
    decode_text,
    delimited_tag,
    fixed32_tag,
    int32,
    read_fields,
    read_float,
    read_packed_varints,
    varint_tag,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ctx_formats.onnx_model import GraphDef
    from ctx_formats.wire import Field, Runs

LARGE_STRING = 1 << 16
"""A STRING attribute over this many bytes (an embedded payload) stays a view of the file."""

LONG = 1 << 12
"""Bytes of a message from which on runs of numbers are looked for."""

_NAME, _DOC, _REF = delimited_tag(1), delimited_tag(13), delimited_tag(21)
_TYPE = varint_tag(20)
_FLOAT, _INT, _STRING = fixed32_tag(2), varint_tag(3), delimited_tag(4)
_FLOATS_PACKED, _FLOATS = delimited_tag(7), fixed32_tag(7)
_INTS_PACKED, _INTS = delimited_tag(8), varint_tag(8)
_KINDS = {
    _FLOAT: AttributeType.FLOAT,
    _INT: AttributeType.INT,
    _STRING: AttributeType.STRING,
    delimited_tag(5): AttributeType.TENSOR,
    delimited_tag(6): AttributeType.GRAPH,
    _FLOATS_PACKED: AttributeType.FLOATS,
    _FLOATS: AttributeType.FLOATS,
    _INTS_PACKED: AttributeType.INTS,
    _INTS: AttributeType.INTS,
    delimited_tag(9): AttributeType.STRINGS,
    delimited_tag(10): AttributeType.TENSORS,
    delimited_tag(11): AttributeType.GRAPHS,
    delimited_tag(14): AttributeType.TYPE_PROTO,
    delimited_tag(15): AttributeType.TYPE_PROTOS,
    delimited_tag(22): AttributeType.SPARSE_TENSOR,
    delimited_tag(23): AttributeType.SPARSE_TENSORS,
}
_SCALARS = {AttributeType.FLOAT: 0.0, AttributeType.INT: 0, AttributeType.STRING: b""}
"""Defaults of scalars that proto3 omits because they are zero; of two values the last counts."""
_MESSAGES = {
    AttributeType.TENSOR,
    AttributeType.GRAPH,
    AttributeType.TYPE_PROTO,
    AttributeType.SPARSE_TENSOR,
}
_NUMBERS = {
    AttributeType.FLOAT,
    AttributeType.INT,
    AttributeType.STRING,
    AttributeType.FLOATS,
    AttributeType.INTS,
    AttributeType.STRINGS,
}


def decode_attribute(
    data: memoryview,
    start: int,
    end: int,
    subgraph: Callable[[int, int], GraphDef],
    runs: Runs = NO_RUNS,
) -> Attribute:
    """The AttributeProto in data[start:end].

    Args:
        data: The file.
        start: Where the message begins.
        end: Where it ends.
        subgraph: Decodes the GraphProto in a span of `data`.
        runs: Bytes of the file that are not in `data`, by where they begin.

    Raises:
        FormatError: No name, an unknown type, or values of another type than it says.
    """
    name = doc_string = reference = ""
    declared = 0
    values: dict[AttributeType, list[object]] = {}
    for tag, a, b in _read_fields(data, start, end, values):
        kind = _KINDS.get(tag)
        if kind is not None:
            values.setdefault(kind, []).extend(_values(data, tag, (a, b), subgraph, runs))
        elif tag == _NAME:
            name = decode_text(data, a, b, "attribute.name")
        elif tag == _TYPE:
            declared = int32(a)
        elif tag == _REF:
            reference = decode_text(data, a, b, "attribute.ref_attr_name")
        elif tag == _DOC:
            doc_string = decode_text(data, a, b, "attribute.doc_string")
    if not name:
        raise FormatError("attribute.name", "none", "a name")
    attribute_type = _type(name, declared, values)
    value = None if reference else _value(name, attribute_type, values)
    return Attribute(name, attribute_type, value, reference, doc_string)


def _read_fields(
    data: memoryview, start: int, end: int, values: dict[AttributeType, list[object]]
) -> Iterator[Field]:
    """The fields in their order; long runs of numbers are put into `values` instead."""
    if end - start < LONG:
        yield from read_fields(data, start, end)
        return
    from ctx_formats.attribute_runs import split_runs  # noqa: PLC0415 - lazy: rare

    for first, last, tag, numbers in split_runs(data, start, end):
        if tag:
            values.setdefault(_KINDS[tag], []).extend(numbers)
        else:
            yield from read_fields(data, first, last)


def is_plain(attribute: Attribute) -> bool:
    """Whether an attribute holds nothing but numbers and strings."""
    return attribute.type in _NUMBERS


def _type(name: str, declared: int, values: dict[AttributeType, list[object]]) -> AttributeType:
    """The attribute's type; files older than IR version 2 leave it to the field in use."""
    try:
        attribute_type = AttributeType(declared)
    except ValueError as exc:
        raise FormatError(f"attribute '{name}'.type", str(declared), "0 to 14") from exc
    if attribute_type is AttributeType.UNDEFINED and len(values) == 1:
        attribute_type = next(iter(values))
    strays = [kind.name for kind in values if kind is not attribute_type]
    if strays:
        raise FormatError(f"attribute '{name}'", f"{strays[0]} in it", attribute_type.name)
    return attribute_type


def _value(name: str, kind: AttributeType, values: dict[AttributeType, list[object]]) -> object:
    candidates: Sequence[object] = values.get(kind, ())
    if kind in _SCALARS:
        return candidates[-1] if candidates else _SCALARS[kind]
    if kind in _MESSAGES:
        if len(candidates) != 1:
            raise FormatError(
                f"attribute '{name}'", f"{len(candidates)} values", f"one {kind.name}"
            )
        return candidates[0]
    return None if kind is AttributeType.UNDEFINED else tuple(candidates)


def _values(  # one case a field of AttributeProto
    data: memoryview,
    tag: int,
    span: tuple[int, int],
    subgraph: Callable[[int, int], GraphDef],
    runs: Runs,
) -> Sequence[object]:
    a, b = span
    if tag in (_INT, _INTS):
        return (as_int64(a),)
    if tag in (_FLOAT, _FLOATS):
        return (read_float(data, a),)
    if tag == _INTS_PACKED:
        return [as_int64(v) for chunk in read_packed_varints(data, a, b) for v in chunk]
    if tag == _FLOATS_PACKED:
        return _floats(data, a, b)
    kind = _KINDS[tag]
    if kind in (AttributeType.STRING, AttributeType.STRINGS):
        large = kind is AttributeType.STRING and b - a > LARGE_STRING
        return (runs.get(a, data[a:b]) if large else bytes(data[a:b]),)
    if kind in (AttributeType.TENSOR, AttributeType.TENSORS):
        from ctx_formats.decode_tensor import decode_tensor  # noqa: PLC0415 - lazy: reload

        return (decode_tensor(data, a, b, runs),)
    if kind in (AttributeType.GRAPH, AttributeType.GRAPHS):
        return (subgraph(a, b),)
    if kind in (AttributeType.SPARSE_TENSOR, AttributeType.SPARSE_TENSORS):
        from ctx_formats.decode_tensor import decode_sparse_tensor  # noqa: PLC0415 - lazy: reload

        return (decode_sparse_tensor(data, a, b, runs),)
    return (decode_type(data, a, b),)


def _floats(data: memoryview, start: int, end: int) -> Sequence[float]:
    size = end - start
    if size % 4:
        raise FormatError("attribute.floats", f"{size} bytes", "a multiple of 4")
    return struct.unpack_from(f"<{size // 4}f", data, start)

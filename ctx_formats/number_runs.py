"""Long runs of numbers in an AttributeProto, read without a step of Python for each field.

onnx.proto has `ints` and `floats` without `packed`: each number is a field with a tag. Trees of
decisions have millions of them.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.wire import as_int64, fixed32_tag, read_field_span, read_varint, varint_tag

if TYPE_CHECKING:
    from collections.abc import Iterator

    Part = tuple[int, int, int, list[float] | list[int]]
    """Begin and end of fields, 0, nothing; or 0, 0, the tag of a run, its numbers."""

_FLOATS, _INTS = fixed32_tag(7), varint_tag(8)
_MOST = 8192
"""Fields of a run; the next one goes on behind it."""
_TAG_OF_FLOAT, _TAG_OF_INT = (re.escape(bytes([tag])) for tag in (_FLOATS, _INTS))
_FLOAT_RUN = re.compile(rb"(?:%b.{4}){1,%d}+" % (_TAG_OF_FLOAT, _MOST), re.DOTALL)
_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_INT_RUN = re.compile(rb"(?:%b%b){1,%d}+" % (_TAG_OF_INT, _VARINT, _MOST))
_INT = re.compile(rb"%b(%b)" % (_TAG_OF_INT, _VARINT))


def skip_numbers(data: memoryview, at: int, end: int) -> int:
    """Where the `floats` and `ints` that begin at `at` end, within data[at:end]; `at` without."""
    run = _FLOAT_RUN.match(data, at, end) or _INT_RUN.match(data, at, end)
    return run.end() if run else at


def split_numbers(data: memoryview, start: int, end: int) -> Iterator[Part]:
    """The AttributeProto in data[start:end], divided into runs of numbers and other fields.

    Bytes that are not a field are part of the last span, whose reader finds the mistake.
    """
    at = begin = start
    while at < end:
        if data[at] not in (_FLOATS, _INTS):
            try:
                at = read_field_span(data, at, end)[2]
            except FormatError:
                break
            continue
        stop = skip_numbers(data, at, end)
        if stop == at:
            break
        if begin < at:
            yield begin, at, 0, []
        tag, run = data[at], bytes(data[at:stop])
        yield 0, 0, tag, _decode_floats(run) if tag == _FLOATS else _decode_ints(run)
        at = begin = stop
    if begin < end:
        yield begin, end, 0, []


def _decode_floats(run: bytes) -> list[float]:
    return [value for (value,) in struct.iter_unpack("<xf", run)]


def _decode_ints(run: bytes) -> list[int]:
    texts = _INT.findall(run)
    values = {text: as_int64(read_varint(text, 0, len(text))[0]) for text in set(texts)}
    return [values[text] for text in texts]

"""Long runs of numbers and short texts in an AttributeProto, without a step of Python for each.

onnx.proto has `ints` and `floats` without `packed`: each number is a field with a tag, as each of
`strings` is. Trees of decisions have millions of them.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.wire import (
    as_int64,
    delimited_tag,
    fixed32_tag,
    read_field_span,
    read_varint,
    varint_tag,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    Part = tuple[int, int, int, list[float] | list[int] | list[bytes]]
    """Begin and end of fields, 0, nothing; or 0, 0, the tag of a run, what is in it."""

_FLOATS, _INTS, _STRINGS = fixed32_tag(7), varint_tag(8), delimited_tag(9)
_MOST = 8192
"""Fields of a run; the next one goes on behind it."""
_LONGEST_TEXT = 31
_TAG_OF_FLOAT, _TAG_OF_INT, _TAG_OF_STRING = (
    re.escape(bytes([tag])) for tag in (_FLOATS, _INTS, _STRINGS)
)
_FLOAT_RUN = re.compile(rb"(?:%b.{4}){1,%d}+" % (_TAG_OF_FLOAT, _MOST), re.DOTALL)
_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_INT_RUN = re.compile(rb"(?:%b%b){1,%d}+" % (_TAG_OF_INT, _VARINT, _MOST))
_INT = re.compile(rb"%b(%b)" % (_TAG_OF_INT, _VARINT))
_TEXTS = b"|".join(re.escape(bytes([size])) + b".{%d}" % size for size in range(_LONGEST_TEXT + 1))
_STRING_RUN = re.compile(rb"(?:%b(?:%b)){1,%d}+" % (_TAG_OF_STRING, _TEXTS, _MOST), re.DOTALL)
_RUNS = {_FLOATS: _FLOAT_RUN, _INTS: _INT_RUN, _STRINGS: _STRING_RUN}


def skip_run(data: memoryview, at: int, end: int) -> int:
    """Where the `floats`, `ints` or `strings` that begin at `at` end, in data[at:end].

    `at` itself where none begin, or a long text.
    """
    pattern = _RUNS.get(data[at]) if at < end else None
    run = pattern.match(data, at, end) if pattern else None
    return run.end() if run else at


def split_runs(data: memoryview, start: int, end: int) -> Iterator[Part]:
    """The AttributeProto in data[start:end], divided into runs and other fields.

    Bytes that are not a field are part of the last span, whose reader finds the mistake.
    """
    at = begin = start
    known: dict[bytes, int] = {}
    while at < end:
        stop = skip_run(data, at, end)
        if stop == at:
            try:
                at = read_field_span(data, at, end)[2]
            except FormatError:
                break
            continue
        if begin < at:
            yield begin, at, 0, []
        tag, run = data[at], bytes(data[at:stop])
        if tag == _INTS:
            yield 0, 0, tag, _decode_ints(run, known)
        else:
            yield 0, 0, tag, _decode_floats(run) if tag == _FLOATS else _decode_texts(run)
        at = begin = stop
    if begin < end:
        yield begin, end, 0, []


def _decode_floats(run: bytes) -> list[float]:
    return [value for (value,) in struct.iter_unpack("<xf", run)]


def _decode_ints(run: bytes, known: dict[bytes, int]) -> list[int]:
    """The numbers; `known` has those that were read, and gets the others."""
    texts = _INT.findall(run)
    for text in set(texts).difference(known):
        known[text] = as_int64(read_varint(text, 0, len(text))[0])
    return [known[text] for text in texts]


def _decode_texts(run: bytes) -> list[bytes]:
    """The texts; equal ones are one object, since there are few names of modes."""
    texts: list[bytes] = []
    known: dict[bytes, bytes] = {}
    at = 1
    while at < len(run):
        stop = at + 1 + run[at]
        text = run[at + 1 : stop]
        texts.append(known.setdefault(text, text))
        at = stop + 1
    return texts

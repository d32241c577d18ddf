"""Files made to exhaust or mislead a reader: refused, at the price of their own size."""

from __future__ import annotations

import gc
import struct
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from ctx_formats.bson import decode_document, encode_document
from ctx_formats.container import ALIGNMENT, HEADER, MAGIC
from ctx_formats.container_reader import read_container
from ctx_formats.errors import FormatError
from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import ExternalData, Model
from ctx_formats.wire import write_varint

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = 1 << 20
"""Bytes that refusing a file of some hundred bytes may take at most."""


def message(number: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return write_varint(number << 3 | 2) + write_varint(len(body)) + body


def number(field: int, value: int) -> bytes:
    return write_varint(field << 3) + write_varint(value)


def graph(*parts: bytes) -> bytes:
    return message(7, *parts)


def tensor(*parts: bytes) -> bytes:
    return graph(message(5, *parts, message(8, b"t")))


def attribute(*parts: bytes) -> bytes:
    return graph(message(1, message(5, message(1, b"a"), *parts)))


def nested(around: Callable[[bytes], bytes], depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = around(inner)
    return inner


def sequence_of(inner: bytes) -> bytes:
    return message(4, message(1, inner))


def map_of(inner: bytes) -> bytes:
    return message(5, message(2, inner))


def subgraph(inner: bytes) -> bytes:
    return message(1, message(5, message(1, b"g"), message(6, inner)))


def peak(action: Callable[[], object]) -> int:
    """Bytes of Python memory in use at the worst moment of `action`."""
    gc.collect()
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HUGE = 1 << 62
FLOAT, INT64, STRING = number(2, 1), number(2, 7), number(2, 8)

BOMBS = {
    "a tensor of 2**62 floats in four bytes": tensor(number(1, HUGE), FLOAT, message(9, b"1234")),
    "the same without data": tensor(number(1, HUGE), FLOAT),
    "dims whose product has 4000 bits": tensor(number(1, HUGE) * 64, FLOAT, message(9, b"1")),
    "dims whose product is 2**64": tensor(number(1, 1 << 32) * 2, FLOAT, message(9, b"")),
    "dims times bits is 2**64 and no bytes": tensor(number(1, 1 << 59), FLOAT, message(9, b"")),
    "a negative dim": tensor(number(1, (1 << 64) - 1), FLOAT, message(9, b"1234")),
    "two negative dims": tensor(number(1, (1 << 64) - 1) * 2, FLOAT, message(9, b"1234")),
    "a million dims": tensor(message(1, bytes(1 << 20)), FLOAT),
    "2**40 strings": tensor(number(1, 1 << 40), STRING, message(6, b"a")),
    "2**40 integers, three there": tensor(number(1, 1 << 40), INT64, message(7, b"\1\2\3")),
    "2**40 codes of six bits": tensor(number(1, 1 << 40), number(2, 27), message(5, b"\1")),
    "a length of 2**63": b"\x3a" + write_varint(1 << 63) + b"x",
    "a length of 2**31": b"\x3a" + write_varint(1 << 31) + b"x",
    "a length inside that leads outside": graph(b"\x0a\x7f") + bytes(127),
    "a varint without end": b"\x08" + b"\xff" * 1000,
    "a varint of eleven bytes": b"\x08" + b"\x80" * 10 + b"\x01" + graph(),
    "a packed varint without end": attribute(message(8, b"\xff" * 1000)),
    "a tag of 64 bits": write_varint((1 << 63) | 2) + b"\0" + graph(),
    "a group": b"\x0b" + graph() + b"\x0c",
    "wire type 6": b"\x0e" + graph(),
    "wire type 7": b"\x0f" + graph(),
    "two graphs": graph() + graph(),
    "a thousand graphs": graph() * 1000,
    "33 subgraphs": graph(nested(subgraph, 33)),
    "5000 subgraphs": graph(nested(subgraph, 5_000)),
    "sequences of sequences": graph(message(11, message(2, nested(sequence_of, 26)))),
    "5000 sequences": graph(message(11, message(2, nested(sequence_of, 5_000)))),
    "5000 maps": graph(message(11, message(2, nested(map_of, 5_000)))),
    "external data before the file": tensor(
        FLOAT,
        number(14, 1),
        message(13, message(1, b"location"), message(2, b"w")),
        message(13, message(1, b"offset"), message(2, b"-8")),
    ),
    "external data at 2**63": tensor(
        FLOAT,
        number(14, 1),
        message(13, message(1, b"location"), message(2, b"w")),
        message(13, message(1, b"offset"), message(2, b"9223372036854775808")),
    ),
    "external data of a digit that is none": tensor(
        FLOAT,
        number(14, 1),
        message(13, message(1, b"location"), message(2, b"w")),
        message(13, message(1, b"length"), message(2, "४".encode())),
    ),
    "external data of 4000 digits": tensor(
        FLOAT,
        number(14, 1),
        message(13, message(1, b"location"), message(2, b"w")),
        message(13, message(1, b"length"), message(2, b"1" * 4000)),
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_model_is_refused_without_taking_memory(name: str) -> None:
    data = BOMBS[name]

    def refuse() -> None:
        with pytest.raises(FormatError):
            read_model(memoryview(data))

    refuse()
    assert peak(refuse) < SMALL + 12 * len(data)


def test_what_a_file_only_mentions_is_not_looked_for() -> None:
    """External data of 2**62 floats is a description; whoever maps the file checks it."""
    data = tensor(
        number(1, HUGE),
        FLOAT,
        number(14, 1),
        message(13, message(1, b"location"), message(2, b"w")),
    )
    found = read_model(memoryview(data)).graph.initializers["t"]
    assert found.data == ExternalData("w")
    assert peak(lambda: read_model(memoryview(data))) < SMALL


@pytest.mark.parametrize(("around", "depth"), [(subgraph, 32), (sequence_of, 24), (map_of, 24)])
def test_nesting_up_to_the_limit_is_read(around: Callable[[bytes], bytes], depth: int) -> None:
    inner = nested(around, depth)
    data = graph(inner) if around is subgraph else graph(message(11, message(2, inner)))
    assert isinstance(read_model(memoryview(data)), Model)


def test_raw_data_of_any_size_takes_no_memory() -> None:
    size = 8 << 20
    data = tensor(number(1, size), number(2, 2), message(9, bytes(size)))
    assert peak(lambda: read_model(memoryview(data))) < SMALL


def test_typed_data_takes_no_more_than_the_tensor_and_a_piece_of_it() -> None:
    count = 1 << 20
    data = tensor(number(1, count), INT64, message(7, b"\1" * count))
    assert peak(lambda: read_model(memoryview(data))) < 3 * 8 * count


def head(index: bytes, size: int | None = None) -> bytes:
    return HEADER.pack(MAGIC, 1, 40, 40, len(index) if size is None else size) + index


def entry(name: str, body: bytes) -> bytes:
    inner = b"\x03" + name.encode() + b"\0" + struct.pack("<i", len(body) + 5) + body + b"\0"
    return b"\x03blob_metadata_map\0" + struct.pack("<i", len(inner) + 5) + inner + b"\0"


def index_of(body: bytes) -> bytes:
    body = b"\x02version\0\6\0\0\x001.1.0\0" + body
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def span(offset: int, size: int) -> bytes:
    pair = struct.pack("<q", offset), struct.pack("<q", size)
    return b"\x12data_offset\0" + pair[0] + b"\x12size\0" + pair[1]


def aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


CONTAINERS = {
    "an index of 2**63 bytes": head(b"", 1 << 63),
    "an index longer than the file": aligned(head(b"", 1 << 17)),
    "an index of no bytes": aligned(head(b"")),
    "an index that announces 2**31": aligned(head(struct.pack("<i", -1) + b"\0")),
    "a payload of 2**63": aligned(head(index_of(entry("p", span(65536, (1 << 63) - 1))))),
    "an offset of 2**63": aligned(head(index_of(entry("p", span((1 << 63) - 1, 1))))),
    "offset and size that add up to 2**64": aligned(
        head(index_of(entry("p", span((1 << 63) - 1, (1 << 63) - 1))))
    ),
    "a negative size": aligned(head(index_of(entry("p", span(65536, -65536))))) + bytes(65536),
    "a size that is a text": aligned(
        head(index_of(entry("p", b"\x12data_offset\0" + bytes(8) + b"\x02size\0\1\0\0\0\0")))
    ),
    "a size that is true": aligned(
        head(index_of(entry("p", b"\x10data_offset\0\0\0\1\0\x08size\0\1")))
    ),
    "an entry that is a number": aligned(
        head(index_of(b"\x03blob_metadata_map\0\x0c\0\0\0\x10p\0\1\0\0\0\0"))
    ),
    "a list of payloads": aligned(head(index_of(b"\x04blob_metadata_map\0\5\0\0\0\0"))),
    "a version that is a number": aligned(head(encode_document({"version": 1}))),
    "no version": aligned(head(encode_document({"producer": "p"}))),
    "a payload inside the index": aligned(head(index_of(entry("p", span(40, 5))))),
    "a payload twice": aligned(
        head(index_of(entry("p", span(65536, 5)) + entry("p", span(65536, 5))))
    )
    + bytes(65536),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_hostile_container_is_refused_without_taking_memory(name: str) -> None:
    data = CONTAINERS[name]

    def refuse() -> None:
        with pytest.raises(FormatError):
            read_container(memoryview(data))

    refuse()
    assert peak(refuse) < SMALL


def test_documents_nested_without_end_are_refused() -> None:
    data = encode_document({})
    for _ in range(3000):
        data = struct.pack("<i", len(data) + 8) + b"\x03a\0" + data + b"\0"
    with pytest.raises(FormatError, match="nested over 8 deep"):
        decode_document(memoryview(data))

"""The payload container: what is written is read, what is damaged is found."""

from __future__ import annotations

import io
import struct
from array import array
from typing import TYPE_CHECKING

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from ctx_formats.bson import decode_document, encode_document
from ctx_formats.container import ALIGNMENT, HEADER, MAGIC
from ctx_formats.container_reader import read_container
from ctx_formats.container_writer import write_container
from ctx_formats.errors import FormatError, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def container(payloads: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    items = [(name, lambda f, data=data: f.write(data)) for name, data in payloads.items()]
    write_container(out, items, "tests 1")
    return out.getvalue()


def foreign(entries: Mapping[str, tuple[int, int]], body: bytes, version: str = "1.0.0") -> bytes:
    """As ONNX Runtime's OpenVINO EP writes it: no digests, no index checksum."""
    index = encode_document(
        {
            "version": version,
            "producer": "onnxruntime-openvino-ep-1.31.1",
            "blob_metadata_map": {
                name: {"data_offset": offset, "size": size}
                for name, (offset, size) in entries.items()
            },
        }
    )
    head = HEADER.pack(MAGIC, 1, 40, 40, len(index)) + index
    return head + bytes(-len(head) % ALIGNMENT) + body


@given(
    st.dictionaries(st.text("abc_é", min_size=1, max_size=8), st.binary(max_size=300), min_size=1)
)
def test_what_is_written_is_read(payloads: dict[str, bytes]) -> None:
    found = read_container(memoryview(container(payloads)))
    assert found.producer == "tests 1"
    assert found.has_digests
    for name, data in payloads.items():
        assert bytes(found.read_payload(name)) == data
        assert found.entries[name].blake3 == blake3(data).hexdigest()
        assert found.entries[name].offset % ALIGNMENT == 0


def test_equal_payloads_are_stored_once() -> None:
    data = b"same" * 100_000
    twice = container({"a": data, "b": data, "c": b"other"})
    once = container({"a": data, "c": b"other"})
    assert len(twice) == len(once)
    found = read_container(memoryview(twice))
    assert bytes(found.read_payload("b")) == data
    assert bytes(found.read_payload("c")) == b"other"


def test_the_same_payloads_give_the_same_bytes() -> None:
    payloads = {"a": b"1" * 70_000, "b": b"2"}
    assert container(payloads) == container(payloads)


def test_two_payloads_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two payloads have one name"):
        write_container(io.BytesIO(), [("a", lambda f: None), ("a", lambda f: None)], "tests")


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(FormatError, match="no payload called 'z', expected a, b") as found:
        read_container(memoryview(container({"a": b"1", "b": b"2"}))).payload("z")
    assert found.value.reason is Reason.MISSING_PAYLOAD


def test_no_flipped_bit_of_header_or_index_is_accepted() -> None:
    data = bytearray(container({"one": b"payload one", "two": b"payload two"}))
    end = HEADER.size + HEADER.unpack_from(data)[4]
    _refuses_every_flip(data, range(end), masks=[1 << bit for bit in range(8)])


def test_no_changed_byte_of_padding_is_accepted() -> None:
    """Between the index and the first payload, and at the end of the file."""
    data = bytearray(container({"one": b"payload one"}))
    end = HEADER.size + HEADER.unpack_from(data)[4]
    _refuses_every_flip(data, range(end, ALIGNMENT, 31), masks=[1, 128])
    _refuses_every_flip(data, range(ALIGNMENT + 11, 2 * ALIGNMENT, 37), masks=[16])
    edges = [end, end + 1, ALIGNMENT - 1, ALIGNMENT + 11, 2 * ALIGNMENT - 1]
    _refuses_every_flip(data, edges, masks=[1 << bit for bit in range(8)])


def _refuses_every_flip(data: bytearray, places: Iterable[int], masks: Iterable[int]) -> None:
    view = memoryview(data)
    _read_all(view)
    for at in places:
        for mask in masks:
            data[at] ^= mask
            with pytest.raises(FormatError):
                _read_all(view)
            data[at] ^= mask
    _read_all(view)


def test_no_flipped_bit_of_a_payload_is_accepted() -> None:
    data = bytearray(container({"one": b"payload"}))
    for at in range(ALIGNMENT, ALIGNMENT + 7):
        for bit in range(8):
            data[at] ^= 1 << bit
            with pytest.raises(FormatError, match="payload 'one': digest") as found:
                _read_all(memoryview(data))
            assert found.value.reason is Reason.INTEGRITY
            data[at] ^= 1 << bit


@given(size=st.integers(0, 131_071))
def test_no_other_length_is_accepted(size: int) -> None:
    data = container({"one": b"payload"})
    assert len(data) == 2 * ALIGNMENT
    with pytest.raises(FormatError):
        _read_all(memoryview(data)[:size])
    with pytest.raises(FormatError):
        _read_all(memoryview(data + bytes(size + 1)))


@given(at=st.integers(0, 400), value=st.binary(min_size=1, max_size=8))
def test_overwritten_heads_are_refused_or_unchanged(at: int, value: bytes) -> None:
    data = container({"one": b"payload", "two": b"x" * 70_000})
    damaged = data[:at] + value + data[at + len(value) :]
    if damaged == data:
        return
    with pytest.raises(FormatError):
        _read_all(memoryview(damaged))


def _read_all(data: memoryview) -> None:
    found = read_container(data)
    for name in found.entries:
        found.read_payload(name)


REAL_HEAD = (
    b"OVEP_BIN\x01\0\0\0\0\0\0\0(\0\0\0\0\0\0\0(\0\0\0\0\0\0\0\xb1\0\0\0\0\0\0\0"
    b"\xb1\0\0\0\x03blob_metadata_map\0Y\0\0\0\x03OpenVINOExecutionProvider_OpenVINO-EP-subgraph_1_0\0"
    b" \0\0\0\x10data_offset\0\0\0\x01\0\x10size\0\x93\x0f\0\0\0\0\x02producer\0\x1f\0\0\0"
    b"onnxruntime-openvino-ep-1.24.1\0\x02version\0\x06\0\0\x001.0.0\0\0"
    b"\x001.0.0"  # of the first index, which was longer
)
"""The first bytes of a file that onnxruntime-openvino 1.24.1 wrote for a MatMul and a Relu."""


def test_a_file_that_onnx_runtime_wrote_is_read() -> None:
    data = REAL_HEAD + bytes(ALIGNMENT - len(REAL_HEAD)) + b"B" * 3987 + bytes(ALIGNMENT - 3987)
    found = read_container(memoryview(data))
    assert found.producer == "onnxruntime-openvino-ep-1.24.1"
    (entry,) = found.entries.values()
    assert (entry.name, entry.offset, entry.size) == (
        "OpenVINOExecutionProvider_OpenVINO-EP-subgraph_1_0",
        65536,
        3987,
    )
    assert bytes(found.payload(entry.name)) == b"B" * 3987


def test_our_fields_without_our_checksum_are_damage() -> None:
    data = container({"p": b"1"})
    for key in (b"index_crc", b"blake3", b"crc"):
        assert data.count(b"\0\0" + key) < 2
        damaged = data.replace(key + b"\0", b"x" * len(key) + b"\0")
        with pytest.raises(FormatError, match=r"index") as found:
            read_container(memoryview(damaged))
        assert found.value.reason is Reason.INTEGRITY


def test_a_checksum_that_is_not_the_last_field_is_damage() -> None:
    index = encode_document({"version": "1.1.0", "index_crc": 1, "producer": "p"})
    head = HEADER.pack(MAGIC, 1, 40, 40, len(index)) + index
    with pytest.raises(FormatError, match=r"index.index_crc: moved") as found:
        read_container(memoryview(head + bytes(ALIGNMENT - len(head))))
    assert found.value.reason is Reason.INTEGRITY


def test_a_container_without_payloads_is_not_written() -> None:
    with pytest.raises(ValueError, match="at least one payload"):
        write_container(io.BytesIO(), [], "tests")


def test_an_index_that_no_reader_takes_is_not_written() -> None:
    with pytest.raises(ValueError, match=r"an index of .* bytes is over 16777216"):
        write_container(io.BytesIO(), [("n" * (16 << 20), lambda f: None)], "tests")


def test_a_producer_may_write_views_of_any_elements() -> None:
    numbers = array("d", [1.0, 2.0, 3.0])
    out = io.BytesIO()
    (entry,) = write_container(out, [("p", lambda f: f.write(memoryview(numbers)))], "tests")
    assert entry.size == 24
    assert bytes(read_container(memoryview(out.getvalue())).read_payload("p")) == numbers.tobytes()


def test_a_producer_that_fails_is_not_hidden() -> None:
    def fails(out: object) -> None:
        raise OSError("device lost")

    with pytest.raises(OSError, match="device lost"):
        write_container(io.BytesIO(), [("p", fails)], "tests")


def test_a_file_holds_the_bytes_that_memory_holds(tmp_path: Path) -> None:
    """Embedded or beside the model: one format."""
    payloads = {"a": b"1" * 70_000, "b": b"", "c": b"1" * 70_000}
    items = [(name, lambda f, data=data: f.write(data)) for name, data in payloads.items()]
    with (tmp_path / "c.bin").open("w+b") as file:
        write_container(file, items, "tests 1")
    assert (tmp_path / "c.bin").read_bytes() == container(payloads)


def test_a_container_of_onnx_runtime_is_read_without_digests() -> None:
    data = foreign({"p": (65536, 5)}, b"12345" + bytes(65531))
    found = read_container(memoryview(data))
    assert not found.has_digests
    assert bytes(found.read_payload("p")) == b"12345"


@pytest.mark.parametrize(
    ("entries", "body", "text"),
    [
        ({"p": (65536, 65537)}, bytes(65536), r"inside 131072 bytes"),
        ({"p": (2**63 - 1, 1)}, bytes(65536), "inside 131072 bytes"),
        ({"p": (-65536, 1)}, bytes(65536), "a non-negative integer"),
        ({"p": (65536, -1)}, bytes(65536), "a non-negative integer"),
        ({"p": (65537, 5)}, bytes(65536), "65537, expected 65536"),
        ({"p": (0, 5)}, bytes(65536), "0, expected 65536"),
        ({"p": (65536, 9), "q": (65536, 5)}, bytes(65536), "data_offset: 65536, expected 131072"),
        ({"p": (65536, 5), "q": (196608, 5)}, bytes(196608), "196608, expected 131072"),
        ({"p": (65536, 5)}, bytes(131072), "196608 bytes, expected 131072"),
        ({"p": (65536, 5)}, b"12345" + b"\1" * 65531, "other than zero"),
        ({}, bytes(65536), "no payloads"),
    ],
    ids=[
        "over",
        "far",
        "negative",
        "size",
        "odd",
        "head",
        "overlap",
        "gap",
        "after",
        "padding",
        "empty",
    ],
)
def test_an_index_that_does_not_cover_the_file_is_refused(
    entries: dict[str, tuple[int, int]], body: bytes, text: str
) -> None:
    with pytest.raises(FormatError, match=text):
        read_container(memoryview(foreign(entries, body)))


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (8, 2, "header.version: 2, expected 1"),
        (16, 48, "size 48, index at 40"),
        (24, 41, "size 40, index at 41"),
        (32, 2**64 - 1, "header.index_size"),
        (32, 17 << 20, "header.index_size"),
    ],
)
def test_a_header_with_a_wrong_number_is_refused(at: int, value: int, text: str) -> None:
    data = bytearray(container({"p": b"1"}))
    struct.pack_into("<Q", data, at, value)
    with pytest.raises(FormatError, match=text):
        read_container(memoryview(bytes(data)))


def test_an_index_over_16_mebibytes_is_refused_unread() -> None:
    size = (16 << 20) + 1
    data = HEADER.pack(MAGIC, 1, 40, 40, size) + bytes(size)
    with pytest.raises(FormatError, match=r"index_size: 16777217, expected at most 16777216"):
        read_container(memoryview(data))


def test_another_major_version_of_the_index_is_refused() -> None:
    data = foreign({"p": (65536, 5)}, b"12345" + bytes(65531), version="2.0.0")
    with pytest.raises(FormatError, match=r"index.version: '2.0.0', expected 1.x.y"):
        read_container(memoryview(data))


DOCUMENT = {"a": 1, "b": -(2**63), "c": "text", "d": {"e": True, "f": {}}, "g": 0.5}


def test_a_bson_document_survives() -> None:
    assert decode_document(memoryview(encode_document(DOCUMENT))) == DOCUMENT


def test_a_bson_name_with_a_nul_is_not_written() -> None:
    with pytest.raises(ValueError, match="holds a NUL"):
        encode_document({"a\0b": 1})


@given(at=st.integers(0, 90), value=st.binary(max_size=6), cut=st.integers(0, 6))
def test_damaged_bson_gives_a_format_error_or_a_document(at: int, value: bytes, cut: int) -> None:
    data = encode_document(DOCUMENT)
    damaged = data[:at] + value + data[at + cut :]
    try:
        found = decode_document(memoryview(damaged))
    except FormatError:
        return
    assert len(encode_document(found)) <= len(damaged) + 4 * len(damaged)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "0 bytes, expected at least 5"),
        (b"\x05\0\0\0\1", "last byte 1"),
        (b"\x06\0\0\0\0", "size 6"),
        (b"\x0c\0\0\0\x10a\0\1\0\0\0\0\0", "size 12"),
        (b"\x08\0\0\0\x01a\0\0", "0 bytes left, expected 8"),
        (b"\x08\0\0\0\x07a\0\0", "BSON type 0x07"),
        (b"\x09\0\0\0\x08a\0\2\0", "boolean 2"),
        (b"\x0c\0\0\0\x05a\0\1\0\0\0\0", "4 bytes left, expected a length"),
        (b"\x0d\0\0\0\x05a\0\1\0\0\0\0\0", "length 1, expected 0 to 0"),
        (b"\x0d\0\0\0\x05a\0\xff\xff\xff\xff\0\0", "length -1, expected 0 to 0"),
        (b"\x0c\0\0\0\x03a\0\4\0\0\0\0", "length 4, expected 5 to 4"),
        (b"\x0a\0\0\0\x02a\0\1\0\0", "2 bytes left, expected a length"),
        (b"\x07\0\0\0\x02a\0", "a name without its closing zero"),
        (b"\x08\0\0\0\x0a\xff\0\0", "not UTF-8"),
        (b"\x0e\0\0\0\x02a\0\2\0\0\0\xff\0\0", "not UTF-8"),
        (b"\x0c\0\0\0\x02a\0\xff\0\0\0\0", "length 255"),
        (b"\x0d\0\0\0\x02a\0\1\0\0\0x\0", "without its closing zero"),
    ],
)
def test_bson_that_is_wrong_is_named(data: bytes, text: str) -> None:
    with pytest.raises(FormatError, match=text):
        decode_document(memoryview(data))


def test_bson_that_others_write_is_read() -> None:
    """bsonspec.org: null, an array (a document with the keys 0, 1, ...), binary, int32."""
    items = b"\x0an\0\x10i\0\xff\xff\xff\xff\x05b\0\2\0\0\0\x00xy"
    one = b"\x100\0\7\0\0\0\x021\0\2\0\0\0s\0"
    items += b"\x04a\0" + struct.pack("<i", len(one) + 5) + one + b"\0"
    data = struct.pack("<i", len(items) + 5) + items + b"\0"
    found = decode_document(memoryview(data))
    assert found == {"n": None, "i": -1, "b": b"xy", "a": [7, "s"]}


def test_bson_of_too_many_elements_is_refused() -> None:
    names = (f"{i:x}".encode() for i in range((1 << 18) + 1))
    items = b"".join(b"\x0a" + name + b"\0" for name in names)
    data = struct.pack("<i", len(items) + 5) + items + b"\0"
    with pytest.raises(FormatError, match="over 262144 elements"):
        decode_document(memoryview(data))


def test_a_bson_name_twice_is_refused() -> None:
    one = encode_document({"a": True})[4:-1]
    data = struct.pack("<i", 5 + 2 * len(one)) + one + one + b"\0"
    with pytest.raises(FormatError, match="twice"):
        decode_document(memoryview(data))


def test_bson_nested_without_end_is_refused() -> None:
    data = encode_document({})
    for _ in range(20):
        inner = b"\x03a\0" + data
        data = struct.pack("<i", 5 + len(inner)) + inner + b"\0"
    with pytest.raises(FormatError, match="nested over 8 deep"):
        decode_document(memoryview(data))


def test_a_long_bson_name_is_cut_in_paths() -> None:
    """A path is built for each element below a name: whole, it would cost size times elements."""
    inner = encode_document({"twice": 1, "twicE": 2}).replace(b"twicE", b"twice")
    outer = encode_document({"n" * 100_000: {"placeholder": 0}})
    body = outer[4:-1].replace(encode_document({"placeholder": 0}), inner)
    with pytest.raises(FormatError, match=r"index\.n{80}\.twice: twice, expected once") as caught:
        decode_document(struct.pack("<i", len(body) + 5) + body + b"\0", what="index")
    assert len(str(caught.value)) < 200


def test_a_region_with_many_names_is_digested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    digested: list[int] = []

    def counting(data: memoryview) -> str:
        digested.append(len(data))
        return blake3(data).hexdigest()

    found = read_container(memoryview(container({f"p{i}": b"same" * 500 for i in range(200)})))
    monkeypatch.setattr("ctx_formats.container.payload_digest", counting)
    for name in found.entries:
        assert bytes(found.read_payload(name)) == b"same" * 500
        assert found.payload_digest(name) == blake3(b"same" * 500).hexdigest()
    assert digested == [2000]

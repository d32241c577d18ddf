"""Attributes of many numbers or texts: the values that onnx reads, whatever stands between them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper

from ctx_formats.errors import FormatError
from ctx_formats.model_file import APART_FROM, read_model_file
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes
from ctx_formats.stamped_file import StampedFile

if TYPE_CHECKING:
    from pathlib import Path

    from ctx_formats.onnx_model import Model

COUNT = APART_FROM // 4
"""Numbers that make an attribute longer than what a file is read in."""


def model_of(**attributes: object) -> bytes:
    node = helper.make_node("TreeLike", ["x"], ["y"], domain="trees", **attributes)
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([node], "g", [info], [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("trees", 1)])
    return bytes(model.SerializeToString())


def read(data: bytes, folder: Path) -> Model:
    """The model out of a file, which is read in pieces."""
    path = folder / "m.onnx"
    path.write_bytes(data)
    with StampedFile(path) as file:
        content = read_model_file(file)
    model = read_model(content.view, runs=content.runs)
    assert model_bytes(model) == model_bytes(read_model(memoryview(data)))
    return model


def test_long_integers_floats_and_texts_are_read(tmp_path: Path) -> None:
    drawn = np.random.default_rng(5)
    ints = [int(v) for v in drawn.integers(-(1 << 63), (1 << 63) - 1, COUNT)]
    ints += [*range(-70_000, 70_000), 0, -1, (1 << 63) - 1, -(1 << 63), 0x40, 0x3D, 0x4040]
    singles = drawn.standard_normal(COUNT).astype(np.float32)
    floats = [*singles.tolist(), float("inf"), 0.0, float(np.frombuffer(b"\x3d" * 4, "<f4")[0])]
    texts = [b"LEAF", b"BRANCH_LEQ", b"\x40\x01", b""] * COUNT
    model = read(model_of(ints=ints, floats=floats, texts=texts), tmp_path)
    attributes = model.graph.nodes[0].attributes
    assert attributes["ints"].value == tuple(ints)
    assert attributes["floats"].value == tuple(floats)
    assert attributes["texts"].value == tuple(texts)


@pytest.mark.parametrize("cut", [1, 2, 7])
def test_numbers_that_are_cut_off_are_refused(tmp_path: Path, cut: int) -> None:
    """The message is as long as it says, and its last number goes on behind it."""
    numbers = b"\x40\xff\x01" * COUNT + b"\x40" + b"\xff" * cut
    data = wrapped(b"\x0a\x01a" + numbers)
    with pytest.raises(FormatError, match=r"varint|field"):
        read(data, tmp_path)


def test_numbers_of_two_kinds_in_turns_are_refused(tmp_path: Path) -> None:
    pairs = (b"\x40\x05" + b"\x3d" + struct.pack("<f", 2.0)) * COUNT
    with pytest.raises(FormatError, match="in it"):
        read(wrapped(b"\x0a\x01a" + pairs + b"\xa0\x01\x07"), tmp_path)


def test_packed_and_single_numbers_keep_their_order(tmp_path: Path) -> None:
    numbers = b"\x40\x05" * COUNT + b"\x42\x02\x07\x08" + b"\x40\x09" * COUNT
    model = read(wrapped(b"\x0a\x01a" + numbers + b"\xa0\x01\x07"), tmp_path)
    expected = (5,) * COUNT + (7, 8) + (9,) * COUNT
    assert model.graph.nodes[0].attributes["a"].value == expected


@pytest.mark.parametrize("size", [0, 1, 31, 32, 127, 128, 300])
def test_texts_of_every_length_keep_their_order(tmp_path: Path, size: int) -> None:
    texts = [b"LEAF", b"x" * size, b"\x4a\x04", b"\x40" * size, b""] * (COUNT // 4)
    model = read(model_of(texts=texts, last=7), tmp_path)
    attributes = model.graph.nodes[0].attributes
    assert attributes["texts"].value == tuple(texts)
    assert attributes["last"].value == 7


@pytest.mark.parametrize("rest", [b"\x4a", b"\x4a\x05abcd", b"\x4a\xff"])
def test_texts_that_are_cut_off_are_refused(tmp_path: Path, rest: bytes) -> None:
    with pytest.raises(FormatError, match=r"varint|field|ends at"):
        read(wrapped(b"\x0a\x01a" + b"\x4a\x04LEAF" * COUNT + rest), tmp_path)


def test_texts_and_numbers_in_turns_are_refused(tmp_path: Path) -> None:
    pairs = (b"\x40\x05" + b"\x4a\x04LEAF") * COUNT
    with pytest.raises(FormatError, match="in it"):
        read(wrapped(b"\x0a\x01a" + pairs + b"\xa0\x01\x08"), tmp_path)


def wrapped(attribute: bytes) -> bytes:
    """A model of one node with the AttributeProto."""
    node = field(2, b"y") + field(4, b"TreeLike") + field(5, attribute) + field(7, b"trees")
    return b"\x08\x0a" + field(7, field(1, node) + field(2, b"g")) + field(8, field(1, b"trees"))


def field(number: int, data: bytes) -> bytes:
    size, length = len(data), bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + data

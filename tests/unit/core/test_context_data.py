"""Payloads in the user's hands: callbacks of the compile API and of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from context_models import OPENVINO
from small_models import feed, mlp, sandwich

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto


def options() -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_provider(OPENVINO)
    return made


def check(source: Path, proto: ModelProto, used: ort.SessionOptions) -> None:
    with ort.InferenceSession(source, used) as session:
        (found,) = session.run(None, feed(proto))
    with ort.InferenceSession(proto.SerializeToString(), providers=[OPENVINO]) as plain:
        np.testing.assert_array_equal(found, plain.run(None, feed(proto))[0])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_payloads_go_through_the_users_hands(tmp_path: Path) -> None:
    """Encrypt on the way out, decrypt on the way in; nothing else touches a file."""
    key, vault = 0x5A, {}

    def write(name: str, data: ort.OrtEpContextData) -> None:
        assert data.read(0, 8) == b"OVEP_BIN"
        vault[name] = bytes(b ^ key for b in data.read())

    def read(name: str, buffer: ort.OrtEpContextDataBuffer) -> None:
        buffer.allocate(len(vault[name]))
        buffer.write(bytes(b ^ key for b in vault[name]))

    compiler = ort.ModelCompiler(options(), mlp().SerializeToString())
    compiler.set_ep_context_data_write_func(write)
    compiler.compile_to_file(tmp_path / "c.onnx")
    assert names(tmp_path) == ["c.onnx"]
    used = options()
    used.set_ep_context_data_read_func(read)
    check(tmp_path / "c.onnx", mlp(), used)
    used.clear_ep_context_data_read_func()
    with pytest.raises(ort.InvalidGraph, match="does not exist"):
        check(tmp_path / "c.onnx", mlp(), used)


@pytest.mark.parametrize("error", [ValueError("vault is full"), ort.Fail("vault is full")])
def test_a_failing_write_function_is_told_and_leaves_no_file(
    tmp_path: Path, error: Exception
) -> None:
    def write(name: str, data: ort.OrtEpContextData) -> None:
        raise error

    compiler = ort.ModelCompiler(options(), mlp().SerializeToString())
    compiler.set_ep_context_data_write_func(write)
    with pytest.raises(ort.Fail, match="vault is full"):
        compiler.compile_to_file(tmp_path / "c.onnx")
    assert names(tmp_path) == []


def test_a_failing_read_function_falls_back_to_no_file(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(sandwich().SerializeToString())
    ort.ModelCompiler(options(), source).compile_to_file()
    used = options()
    used.set_ep_context_data_read_func(lambda name, buffer: None)
    with pytest.raises(ort.InvalidGraph, match="read callback allocated nothing") as found:
        check(source.with_name("m_ctx.onnx"), sandwich(), used)
    assert found.value.reason == "missing_payload"


def test_a_data_buffer_keeps_its_bounds() -> None:
    buffer = ort.OrtEpContextDataBuffer(10)
    assert (buffer.size, buffer.max_size, buffer.is_allocated) == (0, 10, False)
    with pytest.raises(ort.InvalidArgument, match="of 11 bytes, at most 10"):
        buffer.allocate(11)
    buffer.allocate(4)
    with pytest.raises(ort.InvalidArgument, match="allocated already"):
        buffer.allocate(4)
    with pytest.raises(ort.InvalidArgument, match="write of 3 bytes at 2"):
        buffer.write(b"abc", 2)
    buffer.write(b"ab", 2)
    assert bytes(buffer.take()) == b"\0\0ab"
    data = ort.OrtEpContextData(buffer.take())
    assert data.read(1, 2) == b"\0a"
    with pytest.raises(ort.InvalidArgument, match=r"read of \[3, 9\)"):
        data.read(3, 6)

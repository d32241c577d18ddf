"""Signing: by the command's function, by sessions that compile and by the compiler."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from context_models import OPENVINO
from signed_models import answer, assert_untrusted, compiled, make_key, options
from small_models import feed, mlp, tied

import ort_lite as ort
from ctx_formats.signatures import read_signed
from ort_lite.cli.app import run_command
from ort_lite.context.signing import sign_file
from ort_lite.testing.context_file import payload_middle
from ort_lite.trust.private_keys import read_signer

if TYPE_CHECKING:
    from pathlib import Path

    from signed_models import Key

    from ort_lite.testing.context_file import ContextFile


@pytest.fixture
def made(tmp_path: Path, key: Key) -> ContextFile:
    return compiled(tmp_path / "a", mlp(), key)


def test_what_is_damaged_is_not_signed(made: ContextFile, key: Key) -> None:
    data = bytearray(made.container())
    data[payload_middle(bytes(data))] ^= 1
    made.put_container(bytes(data))
    before = made.path.read_bytes()
    with pytest.raises(ort.InvalidGraph) as found:
        key.sign(made.path)
    assert found.value.reason == "integrity"
    assert made.path.read_bytes() == before


def test_signing_again_replaces_this_key_s_signature_and_keeps_others(
    made: ContextFile, key: Key, stranger: Key
) -> None:
    stranger.sign(made.path)
    both = made.path.read_bytes()
    key.sign(made.path)
    assert made.path.read_bytes() == both, "Ed25519 has one signature for a message"
    assert len(read_signed(memoryview(both)).records) == 2
    answer(made.path, key.public)
    answer(made.path, stranger.public)
    proto = onnx.load(made.path)
    proto.doc_string = "edited"
    made.path.write_bytes(proto.SerializeToString())
    key.sign(made.path)
    (left,) = read_signed(memoryview(made.path.read_bytes())).records
    answer(made.path, key.public)
    assert_untrusted(lambda: answer(made.path, stranger.public))
    assert left.files == ()


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_a_model_that_its_owner_alone_can_read_stays_so(made: ContextFile, key: Key) -> None:
    made.path.chmod(0o600)
    key.sign(made.path)
    assert made.path.stat().st_mode & 0o777 == 0o600


def test_a_group_s_models_are_signed_by_the_command_that_shares_them(
    tmp_path: Path, key: Key
) -> None:
    paths = [tmp_path / f"{name}.onnx" for name in ("a", "b")]
    for path in paths:
        path.write_bytes(tied().SerializeToString())
    entry = f"ep.context_sign_key={key.private}"
    assert run_command(["share", "-e", "openvino", "-c", entry, *map(str, paths)]) == 0
    for path in paths:
        answer(path.with_name(f"{path.stem}_ctx.onnx"), key.public, proto=tied())


def test_a_key_can_be_changed_for_another(made: ContextFile, key: Key, tmp_path: Path) -> None:
    """Signed with both for a while; each side then drops the old one when it likes."""
    newer = make_key(tmp_path, "newer")
    newer.sign(made.path)
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    shutil.copy(key.public, trusted)
    answer(made.path, trusted)
    shutil.copy(newer.public, trusted)
    (trusted / key.public.name).unlink()
    answer(made.path, trusted)


def test_the_compiler_signs_files_bytes_and_streams(tmp_path: Path, key: Key) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(mlp().SerializeToString())
    made = options(ep__context_sign_key=str(key.private))
    made.add_provider(OPENVINO)
    ort.ModelCompiler(made, source).compile_to_file(tmp_path / "f_ctx.onnx")
    answer(tmp_path / "f_ctx.onnx", key.public)
    compiler = ort.ModelCompiler(made, source, embed_compiled_data_into_model=True)
    chunks: list[bytes] = []
    compiler.compile_to_stream(chunks.append)
    for data in (compiler.compile_to_bytes(), b"".join(chunks)):
        with ort.InferenceSession(data, options(key.public), providers=[OPENVINO]) as session:
            session.run(None, feed(mlp()))
        edited = data.replace(b"tests", b"tests"[::-1], 1)
        assert edited != data
        assert_untrusted(
            lambda data=edited: ort.InferenceSession(data, options(key.public), [OPENVINO])
        )


def test_a_compiled_model_of_a_signed_one_has_its_own_signature_alone(
    tmp_path: Path, key: Key, stranger: Key
) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(mlp().SerializeToString())
    stranger.sign(source)
    made = options(stranger.public, ep__context_enable="1", ep__context_sign_key=str(key.private))
    ort.InferenceSession(source, made, providers=[OPENVINO]).close()
    (record,) = read_signed(memoryview((tmp_path / "m_ctx.onnx").read_bytes())).records
    assert record.public_key == read_signer(key.private, None).public_key
    plain = ort.ModelCompiler(options(), source).compile_to_bytes()
    assert read_signed(memoryview(plain)).records == ()


def test_a_signature_is_of_the_output_beside_which_the_files_lie(tmp_path: Path, key: Key) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(mlp(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    other = tmp_path / "b"
    other.mkdir()
    signer = read_signer(key.private, None)
    with pytest.raises(ort.Fail, match=r"cannot be signed: its file 'w\.bin'"):
        sign_file(path, other / "m.onnx", signer, ort.SessionOptions())
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("embed", ["0", "1"], ids=["external", "embedded"])
def test_long_runs_of_bytes_are_covered(tmp_path: Path, key: Key, embed: str) -> None:
    """Weights and payloads from 256 KiB on lie in memory of their own: ctx_formats.model_file."""
    proto = tied(width=512)
    made = compiled(tmp_path / "a", proto, key, embed=embed)
    expected = answer(made.path, key.public, proto=proto)
    np.testing.assert_array_equal(answer(made.path, None, proto=proto), expected)
    plain = tmp_path / "plain.onnx"
    plain.write_bytes(proto.SerializeToString())
    key.sign(plain)
    answer(plain, key.public, proto=proto)
    for path in (plain, made.path):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        assert_untrusted(lambda path=path: answer(path, key.public, proto=proto))


def test_signing_leaves_every_byte_of_the_model_as_it_was(tmp_path: Path, key: Key) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(tied(width=512).SerializeToString())
    before = path.read_bytes()
    for _ in range(2):
        key.sign(path)
        assert bytes(read_signed(memoryview(path.read_bytes())).content) == before

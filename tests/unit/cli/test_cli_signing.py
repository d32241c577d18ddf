"""`ort-lite keygen`, `sign`, `verify`, and what other commands say of signatures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ctx_formats.signatures import read_signed
from ort_lite.cli.app import root
from ort_lite.trust.private_keys import read_signer

if TYPE_CHECKING:
    from pathlib import Path

EP = ("-e", "openvino")
TRUST = "session.ep_context_trust"


@pytest.fixture
def keys(tmp_path: Path, invoke) -> Path:
    """Name of a pair of keys."""
    assert invoke("keygen", tmp_path / "ship").code == 0
    return tmp_path / "ship"


@pytest.fixture
def signed(model: Path, keys: Path, invoke) -> Path:
    output = model.with_name("signed.onnx")
    assert invoke("compile", model, *EP, "-o", output, "--sign", f"{keys}.key").code == 0
    return output


def test_keygen_names_a_folder_that_does_not_exist(tmp_path: Path, invoke) -> None:
    result = invoke("keygen", tmp_path / "nowhere" / "k")
    assert result.code == 2
    assert result.err.endswith("cannot be written: the folder does not exist\n")


def test_keygen_writes_both_halves_and_says_the_key(tmp_path: Path, invoke) -> None:
    made = invoke("keygen", tmp_path / "k", "--json").json
    assert made["private"] == str(tmp_path / "k.key")
    assert made["public"] == str(tmp_path / "k.pub")
    assert len(made["key"]) == 64
    if os.name == "posix":
        assert (tmp_path / "k.key").stat().st_mode & 0o777 == 0o600
    again = invoke("keygen", tmp_path / "k")
    assert again.code == 2
    assert "would overwrite" in again.err
    assert invoke("keygen", tmp_path / "k", "--force").code == 0


def test_sign_and_verify(model: Path, keys: Path, invoke) -> None:
    refused = invoke("verify", model, "--trust", f"{keys}.pub", "--json")
    assert (refused.code, refused.json["error"]["reason"]) == (4, "untrusted")
    assert "ort-lite sign" in refused.json["error"]["message"]
    done = invoke("sign", model, "--key", f"{keys}.key", "--json").json
    found = invoke("verify", model, "--trust", f"{keys}.pub", "--json").json
    assert found["key"] == done["key"]
    assert found["key_file"] == f"{keys}.pub"
    assert invoke("verify", model, "--trust", f"{keys}.pub").out.startswith(f"{model}: signed by")


def test_sign_may_write_another_file(model: Path, keys: Path, invoke) -> None:
    before, output = model.read_bytes(), model.with_name("other.onnx")
    assert invoke("sign", model, "--key", f"{keys}.key", "-o", output).code == 0
    assert model.read_bytes() == before
    assert output.read_bytes().startswith(before)
    assert invoke("verify", output, "--trust", f"{keys}.pub").code == 0


def test_compile_signs_what_it_writes(signed: Path, keys: Path, tmp_path: Path, invoke) -> None:
    assert invoke("verify", signed, "--trust", f"{keys}.pub").code == 0
    trust = ("-c", f"{TRUST}={keys}.pub")
    assert invoke("run", signed, *EP, *trust, "--dim", "batch=2").code in (0, 2)
    moved = tmp_path / "unsigned.onnx"
    moved.write_bytes(bytes(read_signed(memoryview(signed.read_bytes())).content))
    for command in ("check", "explain"):
        refused = invoke(command, moved, *EP, *trust)
        assert refused.code == 4, refused
        assert "untrusted" in refused.out + refused.err


def test_check_and_explain_say_who_signed(signed: Path, keys: Path, tmp_path: Path, invoke) -> None:
    key = read_signed(memoryview(signed.read_bytes())).records[0].key_id[:16]
    trust = ("-c", f"{TRUST}={keys}.pub")
    for command in ("check", "explain"):
        assert f"{key} (trusted)" in invoke(command, signed, *EP, *trust).out
    assert f"{key} (valid; no trusted keys" in invoke("check", signed, *EP).out
    assert f"{key} (not verified)" in invoke("explain", signed, *EP).out
    data = signed.read_bytes()
    at = data.index(b'"signature":"') + 20
    signed.write_bytes(data[:at] + (b"A" if data[at : at + 1] != b"A" else b"B") + data[at + 1 :])
    told = invoke("check", signed, *EP, "--json").json["nodes"][0]["signed_by"]
    assert told == f"{key} (the signature is not that key's, or the record was edited)"


def test_check_without_a_signature_says_nothing_of_one(model: Path, invoke) -> None:
    output = model.with_name("plain_ctx.onnx")
    assert invoke("compile", model, *EP, "-o", output).code == 0
    assert "signed by" not in invoke("check", output, *EP).out
    assert invoke("check", output, *EP, "--json").json["nodes"][0]["signed_by"] == ""


def test_passphrases_come_from_a_file(tmp_path: Path, model: Path, invoke) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse\n")
    assert invoke("keygen", tmp_path / "k", "--passphrase-file", secret).code == 0
    refused = invoke("sign", model, "--key", tmp_path / "k.key")
    assert refused.code == 2
    assert "is encrypted, and no passphrase was given" in refused.err
    with_it = ("--passphrase-file", secret)
    assert invoke("sign", model, "--key", tmp_path / "k.key", *with_it).code == 0
    output = tmp_path / "o.onnx"
    command = ("compile", model, *EP, "-o", output, "--sign", tmp_path / "k.key", *with_it)
    assert invoke(*command).code == 0
    secret.write_text("wrong\n")
    assert "cannot be decrypted" in invoke("sign", model, "--key", tmp_path / "k.key", *with_it).err


def test_keygen_takes_one_passphrase(tmp_path: Path, invoke) -> None:
    both = ("--ask-passphrase", "--passphrase-file", tmp_path / "p")
    assert invoke("keygen", tmp_path / "k", *both).code == 2


def test_cache_keygen_makes_a_key_that_the_cache_takes(
    tmp_path: Path, model: Path, invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", str(tmp_path / "cache"))
    secret = tmp_path / "cache.secret"
    made = invoke("cache", "keygen", secret, "--json").json
    assert made["file"] == str(secret)
    assert invoke("cache", "keygen", secret).code == 2
    assert "--force" in invoke("cache", "keygen", secret).err
    if os.name == "posix":
        assert secret.stat().st_mode & 0o777 == 0o600
    entry = f"session.ep_context_cache_key={secret}"
    assert invoke("run", model, *EP, "-c", entry).code == 0
    assert invoke("cache", "verify", "--key", secret).code == 0
    assert invoke("cache", "explain", model, *EP, "-c", entry, "--json").json["hit"] is True
    assert invoke("cache", "explain", model, *EP, "--json").json["hit"] is False
    archive = tmp_path / "a.tar"
    assert invoke("cache", "export", archive).code == 0
    assert invoke("cache", "import", archive, "--key", secret).code == 0
    other = tmp_path / "other.secret"
    assert invoke("cache", "keygen", other).code == 0
    assert invoke("cache", "verify", "--key", other).code == 1
    refused = invoke("cache", "import", archive, "--key", other)
    assert refused.code == 4
    assert "mac" in refused.err


def test_a_passphrase_may_be_typed_in(tmp_path: Path) -> None:
    command = ["keygen", str(tmp_path / "k"), "--ask-passphrase"]
    typed = CliRunner().invoke(root, command, input="secret\nsecret\n")
    assert typed.exit_code == 0
    assert "secret" not in typed.stdout
    assert read_signer(tmp_path / "k.key", b"secret").public_key
    differ = CliRunner().invoke(root, [*command, "--force"], input="secret\nother\n")
    assert differ.exit_code == 1
    assert read_signer(tmp_path / "k.key", b"secret").public_key, "nothing was replaced"

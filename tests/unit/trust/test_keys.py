"""Files of keys: which are read, and what is said of the others."""

from __future__ import annotations

import logging
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from signed_models import options
from small_models import mlp

import ort_lite as ort
from ort_lite.trust.private_keys import generate_key, read_passphrase, read_signer
from ort_lite.trust.public_keys import trusted_keys

if TYPE_CHECKING:
    from pathlib import Path

    from signed_models import Key

POSIX = pytest.mark.skipif(os.name != "posix", reason="POSIX modes")


def public_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


def test_both_halves_are_read_by_the_library_and_by_us(key: Key) -> None:
    """PKCS #8 and SubjectPublicKeyInfo in PEM, as other tools read them."""
    private = form.load_pem_private_key(key.private.read_bytes(), None)
    public = form.load_pem_public_key(key.public.read_bytes())
    assert isinstance(private, ed25519.Ed25519PrivateKey)
    assert isinstance(public, ed25519.Ed25519PublicKey)
    assert private.public_key() == public
    der = public.public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)
    (found,) = trusted_keys(str(key.public))
    assert found.der == der
    assert read_signer(key.private, None).public_key == der


def test_keys_may_be_several_files_folders_and_blocks(
    tmp_path: Path, key: Key, stranger: Key
) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    shutil.copy(stranger.public, folder / "a.pub")
    shutil.copy(stranger.public, folder / "b.pem")
    (folder / "notes.txt").write_text("not a key")
    (folder / ".hidden.pub").write_text("not a key")
    both = tmp_path / "both.pem"
    both.write_bytes(key.public.read_bytes() + stranger.public.read_bytes())
    one, other = trusted_keys(str(key.public)), trusted_keys(str(stranger.public))
    expected = {one[0].der, other[0].der}
    for value in (
        f"{key.public}{os.pathsep}{folder}",
        f"{key.public}\n{folder}\n",
        str(both),
        f"{both}\n{folder}",
    ):
        found = trusted_keys(value)
        assert {k.der for k in found} == expected
        assert len(found) == 2


WRONG = {
    "nothing": (None, "names no file of public keys"),
    "missing": ("missing", "cannot be read: No such file"),
    "text": (b"ssh-ed25519 AAAA", "found no PEM block, expected a PEM PUBLIC KEY"),
    "empty": (b"", "found no PEM block"),
    "RSA": (lambda: public_pem(rsa.generate_private_key(65537, 2048)), "of another type"),
    "P-256": (lambda: public_pem(ec.generate_private_key(ec.SECP256R1())), "of another type"),
    "certificate": (b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", "CERTIF"),
    "not base64": (b"-----BEGIN PUBLIC KEY-----\n!!\n-----END PUBLIC KEY-----\n", "base64"),
    "short": (b"-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\n", "3 bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_public_key_is_refused_before_the_model_is_read(
    tmp_path: Path, name: str
) -> None:
    content, match = WRONG[name]
    path = tmp_path / "k.pub"
    if callable(content):
        content = content()
    if isinstance(content, bytes):
        path.write_bytes(content)
    value = "" if content is None else str(path)
    with pytest.raises(ort.InvalidArgument, match=match):
        ort.InferenceSession(mlp().SerializeToString(), options(value))


def test_a_private_key_is_no_public_one(key: Key) -> None:
    with pytest.raises(ort.InvalidArgument, match="found a private key"):
        trusted_keys(str(key.private))


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ort.InvalidArgument, match="has no file"):
        trusted_keys(str(tmp_path))


@POSIX
def test_a_fifo_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "k.pub")
    with pytest.raises(ort.InvalidArgument, match="no regular file"):
        trusted_keys(str(tmp_path / "k.pub"))


@POSIX
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_everybody_can_write_to_is_not_trusted(tmp_path: Path, key: Key, what: str) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    shutil.copy(key.public, folder / "k.pub")
    (folder if what == "folder" else folder / "k.pub").chmod(0o777)
    with pytest.raises(ort.InvalidArgument, match="chmod o-w"):
        trusted_keys(str(folder))


@POSIX
def test_a_private_key_is_its_owner_s_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = generate_key(tmp_path / "k", None, force=False)
    finally:
        os.umask(before)
    assert made.private.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.key", "k.pub"]


@POSIX
def test_a_private_key_that_others_can_read_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = generate_key(tmp_path / "k", None, force=False)
    with caplog.at_level(logging.WARNING):
        read_signer(made.private, None)
        assert caplog.messages == []
        made.private.chmod(0o644)
        read_signer(made.private, None)
    assert caplog.messages == [
        f"users other than its owner can read the secret {made.private}: chmod 600 {made.private}"
    ]


@pytest.mark.parametrize("there", ["k.key", "k.pub"])
def test_no_key_is_overwritten_unless_forced(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("precious")
    with pytest.raises(ort.InvalidArgument, match="would overwrite"):
        generate_key(tmp_path / "k", None, force=False)
    assert (tmp_path / there).read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == [there]
    generate_key(tmp_path / "k", None, force=True)
    assert b"BEGIN" in (tmp_path / there).read_bytes()


def test_a_passphrase_encrypts_the_private_key(tmp_path: Path) -> None:
    made = generate_key(tmp_path / "k", b"secret", force=False)
    assert b"ENCRYPTED PRIVATE KEY" in made.private.read_bytes()
    assert read_signer(made.private, b"secret").public_key == made.public_key
    with pytest.raises(ort.InvalidArgument, match="is encrypted, and no passphrase"):
        read_signer(made.private, None)
    with pytest.raises(ort.InvalidArgument, match="cannot be decrypted with this passphrase"):
        read_signer(made.private, b"other")


def test_a_passphrase_that_is_not_needed_is_an_error(key: Key) -> None:
    with pytest.raises(ort.InvalidArgument, match="is not encrypted: leave the passphrase out"):
        read_signer(key.private, b"secret")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "its first line is empty"),
        (b"\nsecret\n", "its first line is empty"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_passphrase_file_has_it_on_its_first_line(
    tmp_path: Path, content: bytes | None, match: str
) -> None:
    path = tmp_path / "p"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ort.InvalidArgument, match=match):
        read_passphrase(path)
    path.write_bytes(b"with spaces \r\nmore\n")
    assert read_passphrase(path) == b"with spaces "


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"nothing", "found something else, expected a PEM private key"),
        (private_pem(ec.generate_private_key(ec.SECP256R1())), "found .*EC.*PrivateKey"),
        (None, "cannot be read: No such file"),
    ],
)
def test_what_is_no_private_key_is_refused_before_anything_is_compiled(
    tmp_path: Path, content: bytes | None, match: str
) -> None:
    path = tmp_path / "k.key"
    if content is not None:
        path.write_bytes(content)
        path.chmod(0o600)
    source = tmp_path / "m.onnx"
    source.write_bytes(mlp().SerializeToString())
    made = options(ep__context_enable="1", ep__context_sign_key=str(path))
    with pytest.raises(ort.InvalidArgument, match=match):
        ort.InferenceSession(source, made, providers=["OpenVINOExecutionProvider"])
    assert not (tmp_path / "m_ctx.onnx").exists()


def test_a_passphrase_without_a_key_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(mlp().SerializeToString())
    made = options(ep__context_enable="1", ep__context_sign_passphrase_file="p")
    with pytest.raises(ort.InvalidArgument, match="names no key"):
        ort.InferenceSession(source, made, providers=["OpenVINOExecutionProvider"])

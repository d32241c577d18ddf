"""A signature covers every byte in front of it, and nothing can be put behind it."""

from __future__ import annotations

from base64 import encodebytes
from typing import TYPE_CHECKING

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from signed_models import assert_untrusted
from small_models import mlp, sandwich

from ctx_formats.model_file import ModelBytes
from ctx_formats.signatures import PREFIX, read_signed, signature_entries
from ctx_formats.wire import delimited_tag, write_varint
from ort_lite.trust.ed25519 import SPKI, verifies
from ort_lite.trust.private_keys import read_signer
from ort_lite.trust.public_keys import read_public_keys
from ort_lite.trust.verification import require_signed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from signed_models import Key

    from ort_lite.trust.verification import Proof

# RFC 8032 section 7.1, tests 1 and 2: seed, public key, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]
PKCS8 = bytes.fromhex("302e020100300506032b657004220420")  # RFC 8410, before the seed


def pem(label: str, der: bytes) -> bytes:
    return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (
        label.encode(),
        encodebytes(der),
        label.encode(),
    )


@pytest.mark.parametrize(("seed", "public", "message", "signature"), VECTORS)
def test_keys_are_read_as_rfc_8032_has_them(
    tmp_path: Path, seed: str, public: str, message: str, signature: str
) -> None:
    path = tmp_path / "k.key"
    path.write_bytes(pem("PRIVATE KEY", PKCS8 + bytes.fromhex(seed)))
    path.chmod(0o600)
    signer = read_signer(path, None)
    assert signer.public_key == SPKI + bytes.fromhex(public)
    assert signer.key.sign(bytes.fromhex(message)).hex() == signature
    arguments = bytes.fromhex(signature), bytes.fromhex(message)
    assert verifies(signer.public_key, *arguments)
    assert not verifies(signer.public_key, arguments[0], arguments[1] + b"\0")
    assert not verifies(signer.public_key[:-1], *arguments)


def verified(data: bytes | bytearray | memoryview, key: Key) -> Proof:
    return require_signed(ModelBytes(memoryview(data)), str(key.public), "m")


def _der(key: Key) -> bytes:
    return read_public_keys(str(key.public))[0].der


@pytest.fixture
def signed(tmp_path: Path, key: Key, stranger: Key) -> bytes:
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp().SerializeToString())
    key.sign(path)
    stranger.sign(path)
    return path.read_bytes()


def test_a_flipped_bit_in_any_byte_is_refused(signed: bytes, key: Key) -> None:
    """The stranger's record aside, on which nothing depends."""
    parts = read_signed(memoryview(signed))
    (trusted,) = [r for r in parts.records if r.public_key == _der(key)]
    signed = bytes(parts.content) + signature_entries([trusted])
    verified(signed, key)
    for at in range(len(signed)):
        damaged = bytearray(signed)
        damaged[at] ^= 1 << at % 8
        assert_untrusted(lambda data=damaged: verified(data, key))


def test_a_model_cut_off_anywhere_is_refused(signed: bytes, key: Key) -> None:
    """All but the stranger's signature gone is what the key signed."""
    content, records = (
        read_signed(memoryview(signed)).content,
        read_signed(memoryview(signed)).records,
    )
    first = min(records, key=lambda record: record.key_id)
    trusted = _der(key)
    whole = (
        {len(content) + len(signature_entries([first]))} if first.public_key == trusted else set()
    )
    for size in range(len(signed)):
        cut = memoryview(signed)[:size]
        if size in whole:
            verified(cut, key)
        else:
            assert_untrusted(lambda data=cut: verified(data, key))


def entry(name: str, text: str) -> bytes:
    inside = b"".join(
        write_varint(delimited_tag(n)) + write_varint(len(t)) + t
        for n, t in ((1, name.encode()), (2, text.encode()))
    )
    return field(14, inside)


def field(number: int, content: bytes) -> bytes:
    return write_varint(delimited_tag(number)) + write_varint(len(content)) + content


def _parts(signed: bytes) -> tuple[bytes, bytes]:
    size = len(read_signed(memoryview(signed)).content)
    return signed[:size], signed[size:]


def _text(signed: bytes) -> tuple[str, str]:
    record = read_signed(memoryview(signed)).records[0]
    return f"{PREFIX}{record.key_id[:16]}", record.to_text()


def _padded(signed: bytes) -> bytes:
    """The entry's length as a varint of one byte more, which protobuf reads all the same."""
    content, _ = _parts(signed)
    name, text = _text(signed)
    whole = entry(name, text)
    size = len(whole) - 3
    longer = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, 0])
    assert whole[1:3] == write_varint(size)
    return content + whole[:1] + longer + whole[3:]


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "an unknown field in front": lambda s: field(99, b"x") + s,
    "an unknown field before the signatures": lambda s: b"".join(
        [_parts(s)[0], field(99, b"x"), _parts(s)[1]]
    ),
    "an unknown field behind": lambda s: s + field(99, b"x"),
    "an unknown number behind": lambda s: s + write_varint(99 << 3) + b"\1",
    "metadata behind": lambda s: s + entry("ort_config", "{}"),
    "another producer behind, which wins": lambda s: s + field(2, b"somebody"),
    "another graph behind": lambda s: s + field(7, mlp().graph.SerializeToString()),
    "a signature in front": lambda s: _parts(s)[1] + _parts(s)[0],
    "signatures twice": lambda s: s + _parts(s)[1],
    "an entry that looks like one": lambda s: s + entry(f"{PREFIX}{'0' * 16}", "{}"),
    "an entry of another name": lambda s: s + entry(f"{PREFIX}x", _text(s)[1]),
    "a record with one field more": lambda s: (
        _parts(s)[0] + entry(_text(s)[0], '{"a":1,' + _text(s)[1][1:])
    ),
    "a record with a field twice": lambda s: (
        _parts(s)[0] + entry(_text(s)[0], '{"algorithm":"ed25519",' + _text(s)[1][1:])
    ),
    "a record that is spelled otherwise": lambda s: (
        _parts(s)[0] + entry(_text(s)[0], _text(s)[1].replace(",", ", ", 1))
    ),
    "a padded length": _padded,
    "a field that the last one overrules": lambda s: (
        field(8, onnx.helper.make_opsetid("", 16).SerializeToString()) + s
    ),
    "another model with these signatures": lambda s: sandwich().SerializeToString() + _parts(s)[1],
    "the record of another model, signature and all": lambda s: s.replace(
        read_signed(memoryview(s)).records[0].model_blake3.encode(), b"0" * 64
    ),
    "no signature": lambda s: _parts(s)[0],
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(signed: bytes, key: Key, name: str) -> None:
    forged = FORGERIES[name](signed)
    assert forged != signed
    assert_untrusted(lambda: verified(forged, key))


def test_a_stranger_s_signature_may_come_and_go(signed: bytes, key: Key) -> None:
    content, _ = _parts(signed)
    for record in read_signed(memoryview(signed)).records:
        alone = content + signature_entries([record])
        if record.public_key == verified(signed, key).key.der:
            verified(alone, key)
        else:
            assert_untrusted(
                lambda data=alone: verified(data, key),
                match="alone",
            )


@given(data=st.data())
@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_whatever_is_cut_out_put_in_or_changed_is_refused(
    signed: bytes, key: Key, data: st.DataObject
) -> None:
    """Of a model with the trusted signature alone."""
    parts = read_signed(memoryview(signed))
    signed = bytes(parts.content) + signature_entries(
        [record for record in parts.records if record.public_key == _der(key)]
    )
    start = data.draw(st.integers(0, len(signed)))
    stop = data.draw(st.integers(start, min(start + 40, len(signed))))
    piece = data.draw(st.one_of(st.binary(max_size=40), st.sampled_from(_FIELDS)))
    forged = signed[:start] + piece + signed[stop:]
    if forged == signed:
        verified(forged, key)
    else:
        assert_untrusted(lambda: verified(forged, key))


_FIELDS = (field(99, b"x"), entry("ort_config", "{}"), b"\x72\x00", b"\x08\x0a", field(7, b""))


def test_no_more_than_64_signatures_are_looked_at(signed: bytes, key: Key) -> None:
    many = b"".join(entry(f"{PREFIX}{n:016x}", "{}") for n in range(65))
    assert_untrusted(lambda: verified(signed + many, key), match="expected")

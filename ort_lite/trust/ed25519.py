"""Ed25519 (RFC 8032) by the package `cryptography`, imported where signatures are in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.status import Fail

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SPKI = bytes.fromhex("302a300506032b6570032100")
"""SubjectPublicKeyInfo of Ed25519 in DER up to the 32 bytes of the key: RFC 8410."""
KEY_BYTES = 32
MISSING = (
    "signatures need the package cryptography, which cannot be imported ({}): "
    'pip install "ort-lite[sign]"'
)


def verifies(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` is that of `message` by a key in SubjectPublicKeyInfo.

    Raises:
        Fail: The package is missing.
    """
    if not is_ed25519(public_key):
        return False
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - lazy: rare
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - lazy: rare
    except ImportError as exc:
        raise Fail(MISSING.format(exc)) from exc
    try:
        Ed25519PublicKey.from_public_bytes(public_key[len(SPKI) :]).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_ed25519(public_key: bytes) -> bool:
    """Whether a SubjectPublicKeyInfo is one of Ed25519."""
    return public_key.startswith(SPKI) and len(public_key) == len(SPKI) + KEY_BYTES


def generate_key() -> Ed25519PrivateKey:
    """A new private key.

    Raises:
        Fail: The package is missing.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - lazy: rare
    except ImportError as exc:
        raise Fail(MISSING.format(exc)) from exc
    return ed25519.Ed25519PrivateKey.generate()


def public_half(key: Ed25519PrivateKey) -> bytes:
    """The SubjectPublicKeyInfo of a private key."""
    return SPKI + key.public_key().public_bytes_raw()

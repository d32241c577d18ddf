"""Private keys: made, kept in PEM files that their owner alone can read, and signed with."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import create_sibling_file, publish, write_file
from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.session_log import get_logger
from ort_lite.status import Fail, InvalidArgument
from ort_lite.trust import ed25519
from ort_lite.trust.public_keys import MAX_KEY_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from ctx_formats.signatures import SignatureRecord

log = get_logger(__name__)

OWNER_ONLY = 0o600
_EXPECTED = "expected a PEM private key (PKCS #8) of Ed25519; `ort-lite keygen NAME` makes one"


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key, ready to sign.

    Attributes:
        public_key: Its other half, SubjectPublicKeyInfo in DER.
    """

    key: Ed25519PrivateKey
    public_key: bytes

    def sign(self, record: SignatureRecord) -> SignatureRecord:
        """`record` with a signature by this key."""
        ours = replace(record, public_key=self.public_key, signature=b"")
        return replace(ours, signature=self.key.sign(ours.message))


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """Files of a new pair of keys."""

    private: Path
    public: Path
    public_key: bytes


def read_signer(path: Path, passphrase: bytes | None) -> Signer:
    """The key of a file.

    Args:
        path: PEM, PKCS #8.
        passphrase: For an encrypted one; None if absent.

    Raises:
        InvalidArgument: It cannot be read, is not a private key of Ed25519, or the passphrase is
            wrong, missing or not needed.
        Fail: The package cryptography is missing.
    """
    data = _read_key_file(path)
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - lazy: rare
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - lazy: rare
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - lazy: rare
    except ImportError as exc:
        raise Fail(ed25519.MISSING.format(exc)) from exc
    try:
        key = load_pem_private_key(data, passphrase)
    except TypeError as exc:  # encrypted without a passphrase, or the other way round
        needed = passphrase is None
        state = "is encrypted, and no passphrase was given" if needed else "is not encrypted"
        hint = "name a file with the passphrase" if needed else "leave the passphrase out"
        raise InvalidArgument(f"the private key {path} {state}: {hint}") from exc
    except (ValueError, UnsupportedAlgorithm) as exc:
        if passphrase is not None and b"ENCRYPTED" in data:
            raise InvalidArgument(
                f"the private key {path} cannot be decrypted with this passphrase: {exc}"
            ) from exc
        actual = "a public key" if b"BEGIN PUBLIC KEY" in data else "something else"
        raise InvalidArgument(f"the private key {path}: found {actual}, {_EXPECTED}") from exc
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidArgument(f"the private key {path}: found {type(key).__name__}, {_EXPECTED}")
    return Signer(key, ed25519.public_half(key))


def is_encrypted(path: Path) -> bool:
    """Whether a private key needs a passphrase.

    Raises:
        InvalidArgument: It cannot be read.
    """
    return b"ENCRYPTED" in _read_key_file(path)


def read_passphrase(path: Path) -> bytes:
    """The first line of a file, without its end.

    Raises:
        InvalidArgument: It cannot be read, or the line is empty.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(MAX_KEY_FILE).rstrip(b"\r\n")
    except OSError as exc:
        raise InvalidArgument(f"the passphrase {path} cannot be read: {exc.strerror}") from exc
    if not line:
        raise InvalidArgument(f"the passphrase {path}: its first line is empty")
    return line


def generate_key(name: Path, passphrase: bytes | None, *, force: bool) -> KeyFiles:
    """Make a key and write both halves: `<name>.key`, which its owner alone can read, and `.pub`.

    Raises:
        InvalidArgument: One of the files is there and `force` is false, or none can be written.
        Fail: The package cryptography is missing.
    """
    key = ed25519.generate_key()
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415 - lazy: rare

    private, public = name.with_name(f"{name.name}.key"), name.with_name(f"{name.name}.pub")
    there = [str(path) for path in (private, public) if path.exists() or path.is_symlink()]
    if there and not force:
        raise InvalidArgument(
            f"a new key would overwrite {' and '.join(there)}, and the old one would be lost: name "
            "other files, or use --force"
        )
    hiding = form.BestAvailableEncryption(passphrase) if passphrase else form.NoEncryption()
    text = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, hiding)
    shown = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    try:
        write_secret(private, text, replace=force)
        write_file(public, shown, replace=force)
    except OSError as exc:
        problem = exc.strerror or exc
        raise InvalidArgument(
            f"the keys {private} and {public} cannot be written: {problem}"
        ) from exc
    return KeyFiles(private, public, ed25519.public_half(key))


def write_secret(path: Path, data: bytes, *, replace: bool) -> None:
    """Publish a file that its owner alone can read, at no moment anybody else.

    Raises:
        FileExistsError: It is there and `replace` is false.
        OSError: It cannot be written.
    """
    with create_sibling_file(path, OWNER_ONLY) as (file, temporary):
        file.write(data)
    publish(temporary, path, replace=replace)


def warn_if_shown(path: Path) -> None:
    """Say where others than its owner can read a secret."""
    if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        log.warning("users other than its owner can read the secret %s: chmod 600 %s", path, path)


def _read_key_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_KEY_FILE)
        if b"PRIVATE KEY" in data:
            warn_if_shown(path)
    except OSError as exc:
        raise InvalidArgument(
            f"the private key {path} cannot be read: {exc.strerror}; `ort-lite keygen NAME` writes "
            "one to NAME.key"
        ) from exc
    return data

"""Public keys out of PEM files: those whose signatures a session believes.

Without `cryptography`, whose reader of key files takes longer to import than a start takes: a
public key of Ed25519 has one spelling in DER (RFC 8410).
"""

from __future__ import annotations

import os
import re
import stat
from base64 import b64decode
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.signatures import KEY_SHOWN, key_id
from ort_lite.options import TRUST_KEY
from ort_lite.status import InvalidArgument
from ort_lite.trust.ed25519 import is_ed25519

if TYPE_CHECKING:
    from collections.abc import Sequence

SUFFIXES = (".pub", ".pem")
"""Files of a folder that are read as public keys."""
MAX_KEY_FILE = 1 << 16
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s(.*?)-----END \1-----", re.DOTALL)
_PUBLIC = "PUBLIC KEY"
_MAKE = "`ort-lite keygen NAME` writes one to NAME.pub"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key and the file that it came from.

    Attributes:
        der: SubjectPublicKeyInfo.
    """

    der: bytes
    file: str

    @property
    def id(self) -> str:
        """Name of the key, which a signature gives too."""
        return key_id(self.der)

    def __str__(self) -> str:
        """The key as messages name it."""
        return f"{self.id[:KEY_SHOWN]} ({self.file})"


def trusted_keys(value: str) -> tuple[PublicKey, ...]:
    """The keys that an entry `session.ep_context_trust` names, each once.

    Args:
        value: Files and folders, one a line, or separated as in PATH.

    Raises:
        InvalidArgument: It names nothing, a file holds something else, a folder no key, or
            everybody can write to one of them.
    """
    parts = value.splitlines() if "\n" in value else value.split(os.pathsep)
    names = [part.strip() for part in parts if part.strip()]
    if not names:
        raise InvalidArgument(f"{TRUST_KEY} names no file of public keys: {_MAKE}")
    keys = [key for name in names for file in _files(name) for key in read_public_keys(file)]
    return tuple({key.der: key for key in reversed(keys)}.values())[::-1]


def _files(name: str) -> Sequence[str]:
    if not os.path.isdir(name):  # noqa: PTH112 - see ctx_formats.safe_path
        return [name]
    _require_guarded(name)
    try:
        names = sorted(f for f in os.listdir(name) if f.endswith(SUFFIXES) and f[0] != ".")  # noqa: PTH208 - as above
    except OSError as exc:
        raise InvalidArgument(f"{TRUST_KEY}: {name} cannot be listed: {exc.strerror}") from exc
    if not names:
        patterns = " or ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise InvalidArgument(
            f"{TRUST_KEY}: the folder {name} has no file {patterns}, expected at least one public "
            f"key: {_MAKE}"
        )
    return [os.path.join(name, one) for one in names]  # noqa: PTH118 - as above


def read_public_keys(path: str) -> list[PublicKey]:
    """The public keys of a PEM file.

    Raises:
        InvalidArgument: It cannot be read, holds something else or none, or everybody can write
            to it.
    """
    _require_guarded(path)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - see _files
            data = file.read(MAX_KEY_FILE + 1)
    except OSError as exc:
        raise InvalidArgument(
            f"the public key {path} cannot be read: {exc.strerror}; name the .pub file that "
            "`ort-lite keygen` wrote"
        ) from exc
    blocks = _BLOCK.findall(data)
    if not blocks or len(data) > MAX_KEY_FILE:
        raise _key_error(path, "no PEM block" if not blocks else "a large file")
    return [PublicKey(_der(path, label.decode(), body), path) for label, body in blocks]


def _der(path: str, label: str, body: bytes) -> bytes:
    if "PRIVATE" in label:
        raise _key_error(path, f"a private key ({label})")
    if label != _PUBLIC:
        raise _key_error(path, label)
    try:
        der = b64decode(b"".join(body.split()), validate=True)
    except ValueError as exc:
        raise _key_error(path, f"invalid base64 ({exc})") from exc
    if not is_ed25519(der):
        raise _key_error(path, f"a public key of another type ({len(der)} bytes)")
    return der


def _key_error(path: str, actual: str) -> InvalidArgument:
    return InvalidArgument(
        f"the public key {path}: found {actual}, expected a PEM {_PUBLIC} of Ed25519; {_MAKE}"
    )


def _require_guarded(path: str) -> None:
    """Refuse what everybody can change: whoever adds a key there is trusted."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - see _files
    except OSError:
        return  # opening it says more
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InvalidArgument(f"the public key {path}: found no regular file, expected a PEM file")
    if os.name == "posix" and mode & stat.S_IWOTH:
        raise InvalidArgument(
            f"the public key {path}: everybody can write to it, and would be trusted; "
            f"chmod o-w {path}"
        )

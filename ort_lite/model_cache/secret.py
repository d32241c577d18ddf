"""The key of a model cache, which proves that an entry was made by a holder of the key."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.keys import CACHE_SECRET_KEY
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

MAC = "mac"
"""Field of a record."""
SECRET_BYTES = 32
MAX_SECRET_FILE = 4096
_CONTEXT = "ort_lite 2026-11-22 model cache record v1"
_NAME_CONTEXT = "ort_lite 2026-11-22 model cache key name v1"
_TEXT = re.compile(rb"\s*([0-9a-fA-F]{64})\s*")


@dataclass(frozen=True, slots=True)
class CacheSecret:
    """A secret of 32 bytes, of which messages and files hold the name alone."""

    secret: bytes

    @property
    def name(self) -> str:
        """Tells one secret from another and says nothing about it."""
        return blake3(self.secret, derive_key_context=_NAME_CONTEXT).hexdigest()[:16]

    def mac(self, kind: str, content: Mapping[str, object]) -> str:
        """Keyed BLAKE3, in hex, over a record without its fields `check` and `mac`.

        Args:
            kind: What the record is: one of a kind does not pass for one of another.
            content: The record.
        """
        key = blake3(self.secret, derive_key_context=_CONTEXT).digest()
        covered = {name: value for name, value in content.items() if name not in (MAC, "check")}
        spelled = json.dumps([kind, covered], sort_keys=True).encode()
        return blake3(spelled, key=key).hexdigest()

    def verify_mac(self, kind: str, content: Mapping[str, object]) -> bool:
        """Whether a record has the MAC of this secret."""
        from hmac import compare_digest  # noqa: PLC0415 - lazy: rare

        mac = content.get(MAC)
        return isinstance(mac, str) and compare_digest(
            mac.encode(), self.mac(kind, content).encode()
        )

    def __repr__(self) -> str:
        """Type name without the secret."""
        return f"<CacheSecret {self.name}>"


def read_secret(path: str) -> CacheSecret:
    """The secret of a file: 64 hexadecimal digits, as `ort-lite cache keygen` writes them.

    Raises:
        InvalidArgument: It cannot be read, or holds something else.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a start that is a hit imports no pathlib for it
            data = file.read(MAX_SECRET_FILE + 1)
            exposed = os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077
    except OSError as exc:
        raise InvalidArgument(
            f"{CACHE_SECRET_KEY}: {path} cannot be read: {exc.strerror}; "
            "`ort-lite cache keygen FILE` makes one"
        ) from exc
    match = _TEXT.fullmatch(data)
    if not match:
        raise InvalidArgument(
            f"{CACHE_SECRET_KEY}: {path}: found {len(data)} bytes of something else, expected "
            f"{2 * SECRET_BYTES} hexadecimal digits; `ort-lite cache keygen FILE` makes one"
        )
    if exposed:
        from ort_lite.session_log import get_logger  # noqa: PLC0415 - lazy: reload

        warn = "users other than its owner can read the secret %s: chmod 600 %s"
        get_logger(__name__).warning(warn, path, path)
    return CacheSecret(bytes.fromhex(match[1].decode()))

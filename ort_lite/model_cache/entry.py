"""One entry of the model cache: which identity was compiled to which files."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.model_cache.secret import CacheSecret

FORMAT = 1
KIND = "entry"
"""Purpose of the record in its MAC; other records of the cache have other purposes."""
MAX_BYTES = 1 << 20
OBJECT_NAME = re.compile(r"[0-9a-f]{64}\.(onnx|bin)")
_TEXT_FIELDS = ("key", "source", "created")


class NewerEntryError(FormatError):
    """An entry that a newer ort_lite wrote: not read, not damaged, and left where it is."""


@dataclass(frozen=True, slots=True)
class CacheObject:
    """One immutable file of the cache.

    Attributes:
        name: Digest of its content in hex, with `.onnx` (a context model, digest of all bytes)
            or `.bin` (a container, digest of its head, which holds its payloads' digests).
        size: Bytes.
    """

    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """The compiled form of a model for one identity.

    Attributes:
        identity: All that the compiled form depends on, as text.
        model: The context model.
        payloads: The containers that it names.
        source: Where the plain model lay, for a person.
        created: When, UTC, ISO 8601.
        mac: Of the cache's key, where it has one; "" where it has none.
    """

    identity: Mapping[str, str]
    model: CacheObject
    payloads: tuple[CacheObject, ...]
    source: str
    created: str
    mac: str = ""

    @property
    def key(self) -> str:
        """Name of the entry: the digest of its identity."""
        return key_of(self.identity)

    @property
    def objects(self) -> tuple[CacheObject, ...]:
        """The context model and its payload containers."""
        return (self.model, *self.payloads)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(item.size for item in self.objects)

    def to_bytes(self) -> bytes:
        """As JSON, with a digest over itself."""
        content = self._content()
        if self.mac:
            content["mac"] = self.mac
        content["check"] = _check(content)
        return json.dumps(content, indent=1, sort_keys=True).encode()

    def seal(self, secret: CacheSecret) -> CacheEntry:
        """The entry with a MAC of `secret`."""
        return replace(self, mac=secret.mac(KIND, self._content()))

    def has_mac_of(self, secret: CacheSecret) -> bool:
        """Whether its MAC is one of `secret`."""
        return secret.verify_mac(KIND, {**self._content(), "mac": self.mac})

    def _content(self) -> dict[str, object]:
        return {
            "format": FORMAT,
            "key": self.key,
            "source": self.source,
            "created": self.created,
            "identity": dict(self.identity),
            "model": [self.model.name, self.model.size],
            "payloads": [[one.name, one.size] for one in self.payloads],
        }


def key_of(identity: Mapping[str, str]) -> str:
    """Digest of an identity: the same fields with the same values give the same key."""
    return blake3(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()


def read_entry(data: bytes, key: str) -> CacheEntry:
    """Read what `Entry.to_bytes` wrote under the name `key`.

    Raises:
        NewerEntryError: It is of a newer format.
        FormatError: It is damaged (reason integrity), or of no format that is known.
    """
    content = _content(data)
    check = content.pop("check", None)
    if check != _check(content) or content.get("key") != key:
        raise _damage_error("digest", "another one")
    texts = {name: content.get(name) for name in _TEXT_FIELDS}
    identity, payloads = content.get("identity"), content.get("payloads")
    if not isinstance(identity, dict) or not isinstance(payloads, list):
        raise _damage_error("identity or payloads", "missing")
    entry = CacheEntry(
        identity={str(name): str(value) for name, value in identity.items()},
        model=_object(content.get("model")),
        payloads=tuple(_object(one) for one in payloads),
        source=str(texts["source"]),
        created=str(texts["created"]),
        mac=str(content.get("mac", "")),
    )
    if entry.key != key:
        raise _damage_error("identity", f"key {entry.key}")
    return entry


def _content(data: bytes) -> dict[str, object]:
    if len(data) > MAX_BYTES:
        raise _damage_error("size", f"{len(data)} bytes")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise _damage_error("JSON", str(exc)) from exc
    if not isinstance(content, dict):
        raise _damage_error("JSON", "no object")
    written = content.get("format")
    if written != FORMAT:
        newer = type(written) is int and written > FORMAT
        kind = NewerEntryError if newer else FormatError
        raise kind("cache entry.format", repr(written)[:40], str(FORMAT))
    return content


def _object(value: object) -> CacheObject:
    """A name that can leave the folder is none."""
    match value:
        case [str() as name, int() as size] if OBJECT_NAME.fullmatch(name) and size >= 0:
            return CacheObject(name, size)
    raise _damage_error("object", repr(value)[:80])


def _check(content: Mapping[str, object]) -> str:
    return blake3(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _damage_error(field: str, actual: str) -> FormatError:
    return FormatError(f"cache entry.{field}", actual, "what was written", reason=Reason.INTEGRITY)

"""Signatures at the end of a model file: the records, and which bytes they cover.

A signed model is the bytes that were signed, then for each key one entry of `metadata_props`, the
last fields of the ModelProto. So nothing is spelled again before it is digested: every byte in
front of the first entry is covered, read or not, and every other reader of ONNX files sees a
model with a few metadata entries more. Normative text: docs/formats/signatures.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.model_file import digest_pieces
from ctx_formats.wire import decode_entry, delimited_tag, read_fields, write_varint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FORMAT = 1
FIELD = "ort_lite_signature"
DOMAIN = b"ort_lite context signature v1\0"
PREFIX = "ort_lite.signature."
KEY_SHOWN = 16
"""Hex digits of a key's id in the name of an entry and in messages."""
MAX_RECORDS = 64
MAX_RECORD_BYTES = 1 << 20
WHOLE, HEAD = "whole", "head"
SIGNATURE_BYTES = 64

_METADATA = delimited_tag(14)
_NAME = re.compile(re.escape(PREFIX) + rf"[0-9a-f]{{{KEY_SHOWN}}}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BEGIN = write_varint(delimited_tag(1)) + PREFIX.encode()
"""Of an entry, the byte that says how long its name is left out."""


def key_id(public_key: bytes) -> str:
    """Name of a public key: SHA-256, in hex, of its SubjectPublicKeyInfo in DER."""
    return hashlib.sha256(public_key).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedFile:
    """A file next to the model that a signature covers.

    Attributes:
        location: As the model names it.
        size: Bytes of the whole file.
        part: What was digested: "whole", or "head" of a container that holds digests of the rest.
        blake3: Digest of that part, in hex.
    """

    location: str
    size: int
    part: str
    blake3: str

    def __post_init__(self) -> None:
        """Check what a record may say.

        Raises:
            ValueError: One of the values cannot be.
        """
        if self.part not in (WHOLE, HEAD) or self.size < 0 or not _DIGEST.fullmatch(self.blake3):
            raise ValueError(f"file {self.location[:80]!r}: impossible part, size or digest")


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureRecord:
    """The signature of a model by one key.

    Attributes:
        public_key: SubjectPublicKeyInfo in DER of the key that signed.
        model_blake3: Digest, in hex, of the bytes in front of the first signature.
        model_size: How many these are.
        files: What else is covered, in the order of locations.
        signature: Over `message`; empty for what is still to be signed.
    """

    public_key: bytes
    model_blake3: str
    model_size: int
    files: tuple[SignedFile, ...] = ()
    signature: bytes = b""

    @property
    def key_id(self) -> str:
        """Name of the key that signed."""
        return key_id(self.public_key)

    @property
    def message(self) -> bytes:
        """The bytes that are signed: what they are for, then the record without its signature."""
        return DOMAIN + self.unsigned_text().encode()

    def unsigned_text(self) -> str:
        """The record without its signature."""
        return _dumps(self._content())

    def to_text(self) -> str:
        """The value of the model's metadata entry."""
        signature = b64encode(self.signature).decode()
        return _dumps({**self._content(), "signature": signature})

    def _content(self) -> dict[str, object]:
        return {
            FIELD: FORMAT,
            "algorithm": "ed25519",
            "public_key": b64encode(self.public_key).decode(),
            "model": {"blake3": self.model_blake3, "size": self.model_size},
            "files": [
                {"location": f.location, "size": f.size, "part": f.part, "blake3": f.blake3}
                for f in self.files
            ],
        }


@dataclass(frozen=True, slots=True)
class SignedModel:
    """A model's bytes taken apart.

    Attributes:
        content: What signatures cover; zeros stand for long runs that are stored apart.
        records: One for each key; empty for a model that is not signed.
    """

    content: memoryview
    records: tuple[SignatureRecord, ...]

    def digest(self, pieces: Iterable[memoryview]) -> str:
        """BLAKE3, in hex, of what signatures cover, given all bytes of the model in order."""
        return digest_pieces(spans_of(pieces, [(0, len(self.content))])).hexdigest()


def read_signed(data: memoryview) -> SignedModel:
    """Find the signatures of a model.

    Raises:
        FormatError: Reason untrusted; something follows the signatures, or one is not as
            `SignatureRecord.to_text` and `signature_entries` spell it.
    """
    start: int | None = None
    records: dict[str, SignatureRecord] = {}
    for tag, a, b in read_fields(data, 0, len(data)):
        if not _is_signature(data, tag, a, b):
            if start is not None:
                raise _untrusted_error("other fields of the model follow", "nothing after them")
            continue
        name, text = decode_entry(data, a, b, "metadata_props")
        encoded, begin = _encode_entry(name, text), _start(data, tag, a, b)
        if data[begin:b] != encoded or not _NAME.fullmatch(name) or name in records:
            raise _untrusted_error(f"a malformed entry '{name[:80]}'", f"{PREFIX}<key>, each once")
        if len(records) == MAX_RECORDS:
            raise _untrusted_error(f"over {MAX_RECORDS}", f"at most {MAX_RECORDS}")
        records[name] = _record(name, text)
        start = begin if start is None else start
    return SignedModel(data[:start] if start is not None else data, tuple(records.values()))


def content_spans(data: memoryview) -> Iterator[tuple[int, int]]:
    """Spans of a model's bytes without its signatures, wherever other software has put these.

    Raises:
        FormatError: They are not a ModelProto.
    """
    kept = 0
    for tag, a, b in read_fields(data, 0, len(data)):
        if _is_signature(data, tag, a, b):
            yield kept, _start(data, tag, a, b)
            kept = b
    yield kept, len(data)


def spans_of(
    pieces: Iterable[memoryview], spans: Iterable[tuple[int, int]]
) -> Iterator[memoryview]:
    """The bytes of `spans`, which are in order, given all bytes in pieces."""
    remaining = iter(spans)
    start, stop = next(remaining)
    at = 0
    for piece in pieces:
        end = at + len(piece)
        while start < end:
            if max(start, at) < min(stop, end):
                yield piece[max(start, at) - at : min(stop, end) - at]
            if stop > end:
                break
            start, stop = next(remaining, (end, end))
        at = end


def signature_entries(records: Iterable[SignatureRecord]) -> bytes:
    """The fields that follow a model's bytes."""
    named = {f"{PREFIX}{record.key_id[:KEY_SHOWN]}": record.to_text() for record in records}
    return b"".join(_encode_entry(name, named[name]) for name in sorted(named))


def without_signatures(metadata: Mapping[str, str]) -> dict[str, str]:
    """A model's metadata for another model that is made of it."""
    signatures = signature_names(metadata)
    return {key: value for key, value in metadata.items() if key not in signatures}


def signature_names(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Entries of a model's metadata that are signatures."""
    return tuple(sorted(name for name in metadata if name.startswith(PREFIX)))


def _is_signature(data: memoryview, tag: int, a: int, b: int) -> bool:
    """Whether a field is a metadata entry whose name begins as those of signatures do."""
    if tag != _METADATA or b - a < len(_BEGIN) + 1 or data[a] != _BEGIN[0]:
        return False
    return data[a + 2 : a + 1 + len(_BEGIN)] == _BEGIN[1:]


def _start(data: memoryview, tag: int, a: int, b: int) -> int:
    """Offset of the field whose content is data[a:b]; protobuf allows longer spellings."""
    head = write_varint(tag) + write_varint(b - a)
    if data[a - len(head) : a] != head:
        raise _untrusted_error("an entry with a padded tag or length", "the shortest spelling")
    return a - len(head)


def _encode_entry(name: str, text: str) -> bytes:
    entry = b"".join(
        write_varint(delimited_tag(number)) + write_varint(len(value)) + value
        for number, value in ((1, name.encode()), (2, text.encode()))
    )
    return write_varint(_METADATA) + write_varint(len(entry)) + entry


def _record(name: str, text: str) -> SignatureRecord:
    """A record whose text is the one that its content is spelled as: nothing else is in it."""
    if len(text) > MAX_RECORD_BYTES:
        raise _untrusted_error(f"one of {len(text)} characters", f"at most {MAX_RECORD_BYTES}")
    try:
        record = parse_record(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        raise _untrusted_error(f"one that cannot be read: {exc}"[:200], "a record") from exc
    if record.to_text() != text or name != f"{PREFIX}{record.key_id[:KEY_SHOWN]}":
        raise _untrusted_error("a record in another encoding", "the record as it was signed")
    return record


def parse_record(content: dict[str, object]) -> SignatureRecord:
    """The record that decoded JSON describes.

    Raises:
        ValueError: A value is impossible, or the format is another one.
        TypeError: A value is of another type.
        KeyError: A field is missing.
    """
    if content[FIELD] != FORMAT:
        raise ValueError(f"format {str(content[FIELD])[:40]}, this reader knows {FORMAT}")
    model, files = content["model"], content["files"]
    if not isinstance(model, dict) or not isinstance(files, list):
        raise TypeError("model or files are of another type")
    record = SignatureRecord(
        public_key=b64decode(_text(content["public_key"]), validate=True),
        model_blake3=_text(model["blake3"]),
        model_size=_size(model["size"]),
        files=tuple(
            SignedFile(
                location=_text(one["location"]),
                size=_size(one["size"]),
                part=_text(one["part"]),
                blake3=_text(one["blake3"]),
            )
            for one in files
        ),
        signature=b64decode(_text(content["signature"]), validate=True),
    )
    if len(record.signature) != SIGNATURE_BYTES:
        raise ValueError(f"{len(record.signature)} bytes of signature")
    if len({one.location for one in record.files}) != len(record.files):
        raise ValueError("a file appears twice")
    return record


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of text")
    return value


def _size(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("an invalid size")
    return value


def _dumps(content: object) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def _untrusted_error(actual: str, expected: str) -> FormatError:
    return FormatError("signatures", actual, expected, reason=Reason.UNTRUSTED)


def describe_keys(records: Sequence[SignatureRecord]) -> str:
    """Ids of the keys of signatures, for a message."""
    return ", ".join(record.key_id[:KEY_SHOWN] for record in records)

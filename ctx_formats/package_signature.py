"""Signatures of a model package: a file that lists every other file with its digest.

The records are those of docs/formats/signatures.md, over another message, so that a signature of a
package is never one of a model. Normative text: docs/formats/model_package.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, field_names
from ctx_formats.package_manifest import MANIFEST
from ctx_formats.signatures import MAX_RECORDS, SignatureRecord, parse_record
from ctx_formats.strict_json import read_json_object

if TYPE_CHECKING:
    from collections.abc import Iterable

SIGNATURE_FILE = "ort_lite_signatures.json"
FIELD = "ort_lite_package_signatures"
PACKAGE_DOMAIN = b"ort_lite package signature v1\0"
MAX_FILE_BYTES = 16 << 20
_EXPECTED = "signatures as ort-lite package sign writes them"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSignature(SignatureRecord):
    """A signature by one key: `model_*` is about manifest.json, `files` about all other files."""

    @property
    def message(self) -> bytes:
        """The bytes that are signed."""
        return PACKAGE_DOMAIN + self.unsigned_text().encode()


def encode_signatures(signatures: Iterable[PackageSignature]) -> bytes:
    """The bytes of the signature file, sorted by the keys' ids."""
    records = [json.loads(one.to_text()) for one in sorted(signatures, key=lambda one: one.key_id)]
    return (json.dumps({FIELD: records}, indent=1, sort_keys=True) + "\n").encode()


def read_signatures(data: bytes) -> tuple[PackageSignature, ...]:
    """The signatures in the bytes of a signature file.

    Raises:
        FormatError: Reason untrusted; the file is malformed, or `encode_signatures` would write
            its content otherwise.
    """
    try:
        return _read_all(data)
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        raise FormatError(
            SIGNATURE_FILE, str(exc)[:200], _EXPECTED, reason=Reason.UNTRUSTED
        ) from exc


def _read_all(data: bytes) -> tuple[PackageSignature, ...]:
    records = read_json_object(data, SIGNATURE_FILE, limit=MAX_FILE_BYTES)[FIELD]
    if not isinstance(records, list) or len(records) > MAX_RECORDS:
        raise TypeError(f"expected a list of at most {MAX_RECORDS}")
    signatures = tuple(_package_signature(one) for one in records)
    if encode_signatures(signatures) != data:
        raise ValueError("the file is spelled otherwise than it was written")
    if len({one.key_id for one in signatures}) != len(signatures):
        raise ValueError("a key has signed twice")
    return signatures


def _package_signature(content: object) -> PackageSignature:
    if not isinstance(content, dict):
        raise TypeError("a record is not an object")
    record = parse_record(content)
    if any(one.location in (MANIFEST, SIGNATURE_FILE) for one in record.files):
        raise ValueError(f"{MANIFEST} and {SIGNATURE_FILE} are not among the files")
    return PackageSignature(**{name: getattr(record, name) for name in field_names(record)})

"""What ort_lite records in an EPContext node's `notes`: one JSON object, sealed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.errors import FormatError, Reason
from ctx_formats.identity import HardwareIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.ep_context import EpContextNode

FORMAT = 1
KEY = "ort_lite"
MAX_NOTES = 1 << 20
_FIELDS = ("identity", "options", "payload", "seal", "source_model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextNotes:
    """What a payload was made from, with what, for what.

    Attributes:
        producer: Who wrote it, e.g. "ort_lite 0.1.0".
        payload_blake3: Digest of the payload in hex.
        payload_size: Bytes of the payload.
        source_blake3: Digest of the plain model, its external data included.
        options: Provider options that shaped the payload.
    """

    producer: str
    identity: HardwareIdentity
    payload_blake3: str
    payload_size: int
    source_blake3: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def sealed_into(self, node: EpContextNode) -> EpContextNode:
        """`node` with these notes, which hold a digest over its other attributes."""
        content: dict[str, object] = {
            KEY: FORMAT,
            "producer": self.producer,
            "identity": self.identity.to_mapping(),
            "payload": {"blake3": self.payload_blake3, "size": self.payload_size},
            "source_model": {"blake3": self.source_blake3},
            "options": dict(self.options),
        }
        content["seal"] = _seal(node, content)
        return replace(node, notes=_dumps(content))


def read_notes(node: EpContextNode) -> ContextNotes | None:
    """The notes of a node that ort_lite wrote; None for a foreign one.

    Raises:
        FormatError: Notes of ours that are malformed, of a newer format, or (reason
            integrity) do not fit the node's attributes.
    """
    where = f"EPContext node '{node.name}'.notes"
    if f'"{KEY}"' not in node.notes:
        return None
    if len(node.notes) > MAX_NOTES:
        raise FormatError(where, f"{len(node.notes)} characters", f"at most {MAX_NOTES}")
    try:
        content = json.loads(node.notes)
    except (ValueError, RecursionError) as exc:
        raise FormatError(where, f"no JSON: {exc}", "a JSON object") from exc
    if not isinstance(content, dict) or any(key not in content for key in _FIELDS):
        raise FormatError(where, "fields missing", ", ".join(_FIELDS))
    if content.get(KEY) != FORMAT:
        raise FormatError(f"{where}.{KEY}", repr(content.get(KEY))[:40], str(FORMAT))
    seal = content.pop("seal")
    if seal != _seal(node, content):
        raise FormatError(
            where,
            "attributes of the node differ from the ones that were written",
            "an unedited node",
            reason=Reason.INTEGRITY,
        )
    try:
        return _parsed(content)
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise FormatError(where, f"{type(exc).__name__}: {exc}", "notes of ort_lite") from exc


def _parsed(content: Mapping[str, object]) -> ContextNotes:
    payload, source = content["payload"], content["source_model"]
    identity, options = content["identity"], content["options"]
    if not (
        isinstance(payload, dict)
        and isinstance(source, dict)
        and isinstance(identity, dict)
        and isinstance(options, dict)
    ):
        raise TypeError("a field is no object")
    return ContextNotes(
        producer=str(content["producer"]),
        identity=HardwareIdentity.from_mapping(identity),
        payload_blake3=str(payload["blake3"]),
        payload_size=int(payload["size"]),
        source_blake3=str(source["blake3"]),
        options={str(key): str(value) for key, value in options.items()},
    )


def _dumps(content: Mapping[str, object]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _seal(node: EpContextNode, content: Mapping[str, object]) -> str:
    """BLAKE3 over the notes and the attributes that say what the payload is.

    Names of the node, its inputs and its outputs may change when models are glued together,
    and the payload may move between the model and a file; their number, and everything else,
    may not.
    """
    spelled = [
        _dumps(content),
        node.source,
        node.ep_sdk_version,
        node.hardware_architecture,
        node.onnx_model_filename,
        node.partition_name,
        str(node.max_size),
        str(len(node.inputs)),
        str(len(node.outputs)),
    ]
    return blake3("\0".join(spelled).encode()).hexdigest()[:32]

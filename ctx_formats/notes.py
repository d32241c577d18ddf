"""The `notes` that ort_lite writes to an EPContext node: one JSON object, sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.errors import FormatError, Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.plain_json import read_plain_object, spell_plain_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.ep_context import EpContextNode

FORMAT = 1
KEY = "ort_lite"
MAX_NOTES = 1 << 20
_FIELDS = ("identity", "options", "payload", "seal", "source_model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextNotes:
    """The origin of a payload: its source model, producer, options and hardware identity.

    Attributes:
        producer: Name and version of the writer, e.g. "ort_lite 0.1.0".
        payload_blake3: Digest of the payload in hex.
        payload_size: Bytes of the payload.
        weights_blake3: Digest over those of the shared weights that the payload needs.
        source_blake3: Digest of the plain model, its external data included.
        options: Provider options that shaped the payload.
    """

    producer: str
    identity: HardwareIdentity
    payload_blake3: str
    payload_size: int
    weights_blake3: str = ""
    source_blake3: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def seal_into(self, node: EpContextNode) -> EpContextNode:
        """`node` with these notes, which hold a digest over its other attributes."""
        payload: dict[str, object] = {"blake3": self.payload_blake3, "size": self.payload_size}
        if self.weights_blake3:
            payload["weights"] = self.weights_blake3
        content: dict[str, object] = {
            KEY: FORMAT,
            "producer": self.producer,
            "identity": self.identity.to_mapping(),
            "payload": payload,
            "source_model": {"blake3": self.source_blake3},
            "options": dict(self.options),
        }
        content["seal"] = _seal(node, _dumps(content))
        return replace(node, notes=_dumps(content))


def read_notes(node: EpContextNode) -> ContextNotes | None:
    """The notes of a node that ort_lite wrote; None for a foreign one.

    Raises:
        FormatError: Notes of ours that are malformed, of a newer format, or (reason
            integrity) do not fit the node's attributes.
    """
    where = f"EPContext node '{node.name}'.notes"
    if not _is_ours(node.notes):
        return None
    if len(node.notes) > MAX_NOTES:
        raise FormatError(where, f"{len(node.notes)} characters", f"at most {MAX_NOTES}")
    content, spelled = _load_json(node.notes, where)
    version = content.get(KEY, FORMAT)  # first: another version may have other fields
    if type(version) is not int or version != FORMAT:
        raise FormatError(f"{where}.{KEY}", repr(version)[:40], str(FORMAT))
    if any(key not in content for key in (KEY, *_FIELDS)):
        raise FormatError(where, "fields missing", ", ".join(_FIELDS))
    if content["seal"] != _seal(node, spelled):
        raise FormatError(
            where,
            "attributes of the node differ from the ones that were written",
            "an unedited node",
            reason=Reason.INTEGRITY,
        )
    return _parse_notes(content, where)


def _is_ours(notes: str) -> bool:
    """Whether ort_lite wrote them, damaged or not: one damaged word leaves the others."""
    marks = [f'"{key}"' in notes for key in (KEY, *_FIELDS)]
    return marks[0] or sum(marks) >= len(marks) - 2


def _load_json(notes: str, where: str) -> tuple[Mapping[str, object], str]:
    """The JSON object, and how it is spelled without its seal."""
    plain = read_plain_object(notes)
    if plain is not None:
        unsealed = {key: value for key, value in plain.items() if key != "seal"}
        return plain, spell_plain_object(unsealed)
    import json  # noqa: PLC0415 - lazy: reload

    try:
        content = json.loads(notes, object_pairs_hook=_object, parse_constant=_no_constant)
        if not isinstance(content, dict):
            return {}, ""
        spelled = _dumps({key: value for key, value in content.items() if key != "seal"})
        spelled.encode()  # refuses half of a surrogate pair
    except (ValueError, RecursionError) as exc:
        raise FormatError(where, f"no JSON: {exc}", "a JSON object") from exc
    return content, spelled


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name appears twice")
    return content


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _parse_notes(content: Mapping[str, object], where: str) -> ContextNotes:
    payload = _section(content, "payload", where)
    source = _section(content, "source_model", where)
    digest, size, origin = payload.get("blake3"), payload.get("size"), source.get("blake3")
    weights = payload.get("weights", "")
    texts = isinstance(digest, str) and isinstance(weights, str)
    if not texts or type(size) is not int or size < 0:
        raise FormatError(f"{where}.payload", repr(payload)[:80], "{blake3, size}")
    if not isinstance(origin, str):
        raise FormatError(f"{where}.source_model", repr(source)[:80], "{blake3}")
    return ContextNotes(
        producer=str(content.get("producer", "")),
        identity=HardwareIdentity.from_mapping(_texts(content, "identity", where)),
        payload_blake3=str(digest),
        payload_size=size,
        weights_blake3=str(weights),
        source_blake3=origin,
        options=_texts(content, "options", where),
    )


def _section(content: Mapping[str, object], key: str, where: str) -> dict[str, object]:
    section = content[key]
    if not isinstance(section, dict):
        raise FormatError(f"{where}.{key}", type(section).__name__, "an object")
    return section


def _texts(content: Mapping[str, object], key: str, where: str) -> dict[str, str]:
    section = _section(content, key, where)
    texts = {name: value for name, value in section.items() if isinstance(value, str)}
    if len(texts) != len(section):
        raise FormatError(f"{where}.{key}", "a value that is not text", "text")
    return texts


def _dumps(content: Mapping[str, object]) -> str:
    import json  # noqa: PLC0415 - lazy: reload

    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _seal(node: EpContextNode, spelled: str) -> str:
    """BLAKE3 over the notes and the attributes that say what the payload is.

    Names of the node, its inputs and its outputs may change when models are glued together,
    and the payload may move between the model and a file; their number, and everything else,
    may not.
    """
    sealed = [
        spelled,
        node.source,
        node.ep_sdk_version,
        node.hardware_architecture,
        node.onnx_model_filename,
        node.partition_name,
        str(node.max_size),
        str(len(node.inputs)),
        str(len(node.outputs)),
    ]
    return blake3("\0".join(sealed).encode()).hexdigest()[:32]

"""Signatures of a model as text and JSON; a session believes only keys that it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.model_file import read_model_file
from ctx_formats.signatures import KEY_SHOWN, PREFIX, read_signed, signature_names
from ctx_formats.stamped_file import StampedFile

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from ctx_formats.model_file import ModelBytes
    from ort_lite.model.loader import LoadedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSignature:
    """One signature of a model.

    Attributes:
        key: Id of the key that it says it is by; "" where the signatures cannot be read.
        problem: Why it is not that key's over this model; "" for a valid one.
        trusted: Whether the session was given that key and found the signature right.
    """

    key: str
    problem: str = ""
    trusted: bool = False

    def to_json(self) -> dict[str, Any]:
        """The signature as JSON values."""
        return {"key": self.key, "problem": self.problem, "trusted": self.trusted}

    def __str__(self) -> str:
        """Key id and state on one line."""
        state = (
            "trusted" if self.trusted else self.problem or "valid; no trusted keys were configured"
        )
        return f"{self.key[:KEY_SHOWN]} ({state})".lstrip()


def signatures_of(path: str | os.PathLike[str]) -> tuple[ShownSignature, ...]:
    """The signatures of a model file; the files that they cover are not looked at.

    Raises:
        FormatError: It cannot be opened.
    """
    with StampedFile(path) as file:
        data = read_model_file(file)
        file.require_unchanged()
    return _signatures(data)


def signatures_of_loaded(loaded: LoadedModel) -> tuple[ShownSignature, ...]:
    """As `signatures_of`, for a model that a session has verified where it was asked to."""
    signatures = _signatures(loaded.data)
    proven = loaded.proof.key.id if loaded.proof is not None else ""
    return tuple(
        ShownSignature(key=one.key, problem=one.problem, trusted=one.key == proven)
        for one in signatures
    )


def signatures_named(loaded: LoadedModel) -> tuple[ShownSignature, ...]:
    """By what a running session still knows: names of keys, and which of them was verified."""
    proven = loaded.proof.key.id[:KEY_SHOWN] if loaded.proof is not None else ""
    names = (name.removeprefix(PREFIX) for name in signature_names(loaded.model.metadata_props))
    return tuple(
        ShownSignature(
            key=name, problem="" if name == proven else "not verified", trusted=name == proven
        )
        for name in names
    )


def _signatures(data: ModelBytes) -> tuple[ShownSignature, ...]:
    """Nothing but the format is imported for a model without signatures."""
    try:
        signed = read_signed(data.view)
    except FormatError as exc:
        return (ShownSignature(key="", problem=str(exc)),)
    if not signed.records:
        return ()
    from ort_lite.status import Fail  # noqa: PLC0415 - lazy: reload
    from ort_lite.trust.verification import record_problem  # noqa: PLC0415 - lazy: rare

    digest = signed.digest(data.pieces())
    signatures = []
    for record in signed.records:
        try:
            problem = record_problem(record, signed, digest)
        except Fail as exc:
            problem = f"not verified: {exc.message}"
        signatures.append(ShownSignature(key=record.key_id, problem=problem))
    return tuple(signatures)


def describe_signatures(signatures: Sequence[ShownSignature]) -> str:
    """All of them on one line; "" for none."""
    return ", ".join(map(str, signatures))

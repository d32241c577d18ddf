"""Whether a trusted key has signed a model, and what the signature covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.signatures import HEAD, KEY_SHOWN, describe_keys, read_signed
from ort_lite.options import TRUST_KEY
from ort_lite.status import InvalidGraph
from ort_lite.trust.ed25519 import verifies
from ort_lite.trust.public_keys import trusted_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctx_formats.model_file import ModelBytes
    from ctx_formats.signatures import SignatureRecord, SignedFile, SignedModel
    from ort_lite.trust.public_keys import PublicKey

MEND = (
    "get the files from whoever signs them, have them signed with a trusted key (ort-lite sign), "
    f"or name the key that signed them in {TRUST_KEY}"
)


@dataclass(frozen=True, slots=True)
class Proof:
    """A signature that was verified, by a key that is trusted."""

    record: SignatureRecord
    key: PublicKey

    def require(
        self, location: str, pieces: Iterable[memoryview], *, head: int | None = None
    ) -> None:
        """Compare a file next to the model with what was signed.

        Args:
            location: As the model names it.
            pieces: Its bytes.
            head: For a container that holds digests of all behind its head, the head's size.

        Raises:
            FormatError: Reason untrusted; it is not listed, or has other bytes.
        """
        listed = next((f for f in self.record.files if f.location == location), None)
        if listed is None:
            raise self._mismatch(
                location, "the signature does not cover it", "a file that it lists"
            )
        if listed.part == HEAD and head is None:
            raise self._mismatch(
                location, "it contains no digests", "the container that was signed"
            )
        computed = signed_file_of(location, pieces, head if listed.part == HEAD else None)
        if computed != listed:
            raise self._mismatch(
                location,
                f"{computed.size} bytes, digest {computed.blake3[:16]}...",
                f"{listed.size} bytes with {listed.blake3[:16]}... ({listed.part}), as signed",
            )

    def _mismatch(self, location: str, actual: str, expected: str) -> FormatError:
        what = f"file '{location[:200]}' (signature of {self.record.key_id[:KEY_SHOWN]})"
        return FormatError(what, actual, expected, reason=Reason.UNTRUSTED)


def require_signed(data: ModelBytes, trust: str, file: str) -> Proof:
    """The proof that a model's bytes are the ones that a trusted key has signed.

    Args:
        data: The whole model file.
        trust: Value of `session.ep_context_trust`.
        file: The model in a message.

    Raises:
        InvalidGraph: Reason untrusted; they are not.
        InvalidArgument: The keys cannot be read.
        Fail: The package cryptography is missing.
    """
    keys = {key.der: key for key in trusted_keys(trust)}
    try:
        signed = read_signed(data.view)
    except FormatError as exc:
        raise untrusted_error(str(exc.in_file(file))) from exc
    known = [record for record in signed.records if record.public_key in keys]
    if not known:
        signers = (
            f"signed by {describe_keys(signed.records)} alone" if signed.records else "not signed"
        )
        raise untrusted_error(
            f"{file}: {signers}, expected a signature by {_key_names(tuple(keys.values()))}"
        )
    problems = []
    digest = signed.digest(data.pieces())
    for record in known:
        problem = record_problem(record, signed, digest)
        if not problem:
            return Proof(record, keys[record.public_key])
        problems.append(f"{record.key_id[:KEY_SHOWN]}: {problem}")
    raise untrusted_error(f"{file}: wrongly signed: {'; '.join(problems)}")


def record_problem(record: SignatureRecord, signed: SignedModel, digest: str) -> str:
    """Problem of a signature, the files next to the model aside; "" if there is no problem.

    Raises:
        Fail: The package cryptography is missing.
    """
    if not verifies(record.public_key, record.signature, record.message):
        return "the signature is not that key's, or the record was edited"
    size = len(signed.content)
    if (size, digest) != (record.model_size, record.model_blake3):
        return (
            f"found {size} bytes of model with digest {digest[:16]}..., expected "
            f"{record.model_size} with {record.model_blake3[:16]}..., as signed"
        )
    return ""


def untrusted_error(message: str) -> InvalidGraph:
    """The error for a model that no trusted key has signed as it is."""
    return InvalidGraph(
        f"{message} (reason: {Reason.UNTRUSTED}). To fix this: {MEND}.",
        reason=Reason.UNTRUSTED,
        hint=MEND,
    )


def _key_names(keys: Sequence[PublicKey]) -> str:
    return " or ".join(map(str, keys[:4])) + (f" or {len(keys) - 4} more" if len(keys) > 4 else "")


def signed_file_of(
    location: str, pieces: Iterable[memoryview], head: int | None = None
) -> SignedFile:
    """Entry of a signature for a file next to the model.

    Args:
        location: As the model names it.
        pieces: Its bytes.
        head: Size of the part that is digested, for a container that holds digests of the rest.
    """
    from ctx_formats.container import new_digest  # noqa: PLC0415 - lazy: reload
    from ctx_formats.signatures import WHOLE, SignedFile  # noqa: PLC0415 - lazy: rare

    digest, size = new_digest(), 0
    for piece in pieces:
        digest.update(piece if head is None else piece[: max(head - size, 0)])
        size += len(piece)
    part = WHOLE if head is None else HEAD
    return SignedFile(location=location, size=size, part=part, blake3=digest.hexdigest())

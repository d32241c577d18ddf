"""Signs models: what a signature covers is gathered, signed, and put behind the model's bytes."""

from __future__ import annotations

import stat
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.copied_file import open_file
from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import PROTOBUF_LIMIT
from ctx_formats.notes import read_notes
from ctx_formats.onnx_model import ExternalData, SparseTensor, Tensor
from ctx_formats.safe_path import resolve_payload
from ctx_formats.signatures import (
    SignatureRecord,
    content_spans,
    read_signed,
    signature_entries,
    spans_of,
)
from ort_lite.context.hints import refusal_of
from ort_lite.context.keys import PASSPHRASE_KEY, SIGN_KEY
from ort_lite.context.nodes import is_context_node
from ort_lite.context.payload_checks import PayloadChecks
from ort_lite.context.payload_sources import read_payload_container
from ort_lite.model import loader
from ort_lite.model.bodies import walk, walk_nodes
from ort_lite.options import TRUST_KEY, SessionOptions
from ort_lite.status import Fail, InvalidArgument
from ort_lite.trust.verification import record_problem, signed_file_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctx_formats.model_file import ModelBytes
    from ctx_formats.onnx_model import GraphDef, Model
    from ctx_formats.signatures import SignedFile
    from ort_lite.trust.private_keys import Signer
    from ort_lite.trust.verification import Proof


def signer_of(options: SessionOptions) -> Signer | None:
    """The key that a session's entries sign context models with; None for none.

    Raises:
        InvalidArgument: It cannot be read, or there is a passphrase without a key.
        Fail: The package cryptography is missing.
    """
    path, secret = options.config.get(SIGN_KEY, ""), options.config.get(PASSPHRASE_KEY, "")
    if not path:
        if secret:
            raise InvalidArgument(f"{PASSPHRASE_KEY} is set, and {SIGN_KEY} names no key")
        return None
    from ort_lite.trust.private_keys import read_passphrase, read_signer  # noqa: PLC0415 - lazy: rare

    return read_signer(Path(path), read_passphrase(Path(secret)) if secret else None)


def signature_of(
    pieces: Sequence[bytes | memoryview], model: Model, folder: Path | None, signer: Signer
) -> bytes:
    """Bytes that sign a model when they are appended to it.

    Args:
        pieces: The bytes.
        model: What they say.
        folder: The folder of its files, which exist already; None if it is not known.
        signer: The key.

    Raises:
        Fail: A file that is to be covered cannot be found, or the model gets over 2 GiB.
        OSError: As above, by what the system says.
    """
    digest = blake3()
    for piece in pieces:
        digest.update(piece)
    record = SignatureRecord(
        public_key=signer.public_key,
        model_blake3=digest.hexdigest(),
        model_size=sum(map(len, pieces)),
        files=_sign_files(model, folder),
    )
    entries = signature_entries([signer.sign(record)])
    if record.model_size + len(entries) > PROTOBUF_LIMIT:
        raise Fail(f"the model has no room for a signature: at most {PROTOBUF_LIMIT} bytes")
    return entries


def sign_file(path: Path, output: Path, signer: Signer, options: SessionOptions) -> SignatureRecord:
    """Sign a model file whose payloads are what its notes say; other keys' signatures stay.

    A signature of another state of the model or its files goes, and so does this key's last one.

    Args:
        path: The model, a context model or a plain one.
        output: Where the signed one goes, in one step; may be `path`. A file that is there is
            replaced and keeps its mode. The model's files have to be found from there, too.
        signer: The key.
        options: As a session has them that loads the model.

    Raises:
        OrtLiteError: The model or a payload is damaged or missing.
        Fail: As `signature_of`, or `output` cannot be written.
    """
    options = options.without(TRUST_KEY)
    with ExitStack() as opened:
        loaded = loader.load(path, options)
        opened.callback(loaded.close)
        _require_sound(loaded, options)
        try:
            data = loaded.data
            pieces = tuple(spans_of(data.pieces(), content_spans(data.view)))
            plain = read_model(data.view, runs=data.runs)
            entries = signature_of(pieces, plain, output.parent, signer)
            record, kept = _with_others(loaded.data, entries)
            with create_sibling_file(output) as (file, temporary):
                for piece in pieces:
                    file.write(piece)
                file.write(kept)
            if output.exists():
                temporary.chmod(stat.S_IMODE(output.stat().st_mode))
            publish(temporary, output, replace=True)
        except OSError as exc:
            raise Fail(f"{output} cannot be written: {exc}") from exc
    return record


def verify_file(path: Path, keys: Sequence[str]) -> Proof:
    """The proof that a model and every file that it names are what a trusted key has signed.

    Args:
        path: The model.
        keys: Files and folders of public keys.

    Raises:
        OrtLiteError: They are not, with reason untrusted; a payload is damaged or missing.
    """
    options = SessionOptions()
    options.add_session_config_entry(TRUST_KEY, "\n".join(keys) + "\n")
    loaded = loader.load(path, options)
    try:
        _require_sound(loaded, options)
    finally:
        loaded.close()
    assert loaded.proof is not None, "it was asked for"
    return loaded.proof


def _with_others(data: ModelBytes, entries: bytes) -> tuple[SignatureRecord, bytes]:
    """The new record, and the entries with those of other keys that are as good."""
    (record,) = read_signed(memoryview(entries)).records
    try:
        signed = read_signed(data.view)
    except FormatError:
        return record, entries
    digest = signed.digest(data.pieces())
    others = [
        known
        for known in signed.records
        if known.public_key != record.public_key
        and known.files == record.files
        and not record_problem(known, signed, digest)
    ]
    return record, signature_entries([*others, record])


def _require_sound(loaded: loader.LoadedModel, options: SessionOptions) -> None:
    """Refuse a model that a session would refuse on any device."""
    with PayloadChecks(loaded, options) as checks:
        for raw, node in checks.nodes:
            seal = checks.check(raw, node).seal
            if seal is not None:
                where = seal.in_file(loaded.description)
                raise refusal_of(where, node.onnx_model_filename, loaded)


def _sign_files(model: Model, folder: Path | None) -> tuple[SignedFile, ...]:
    """Files that the bytes of a model say nothing of: weights, and payloads without notes."""
    weights = {
        t.data.location for t in all_tensors(model.graph) if isinstance(t.data, ExternalData)
    }
    payloads = _unproven_payloads(model)
    if (weights or payloads) and folder is None:
        raise Fail(
            "the model cannot be signed: its folder is not known; compile it to a file, "
            f"or without {SIGN_KEY}, and sign it with `ort-lite sign`"
        )
    files = {}
    for location in sorted(weights | payloads):
        try:
            path = resolve_payload(str(folder), location)
            with open_file(path, follow_symlink=False) as file:
                head = None
                if location in payloads:
                    container = read_payload_container(file.view, path)
                    head = container.head_size if container.has_digests else None
                files[location] = signed_file_of(location, [file.view], head)
                file.require_unchanged()
        except FormatError as exc:
            raise Fail(f"the model cannot be signed: its file '{location}': {exc}") from exc
    return tuple(files.values())


def _unproven_payloads(model: Model) -> set[str]:
    """Payload files of a model that has a node whose notes do not say every byte of it."""
    nodes = [EpContextNode.from_node(n) for n in walk_nodes(model.graph) if is_context_node(n)]
    all_notes = [read_notes(node) for node in nodes]
    if all(notes is not None and not notes.weights_blake3 for notes in all_notes):
        return set()
    return {n.payload_path for n in nodes if n.main_context and not n.embed_mode}


def all_tensors(graph: GraphDef) -> Iterator[Tensor]:
    """Every tensor of a graph and of its bodies, in whichever place."""
    for part in walk(graph):
        yield from part.initializers.values()
        for sparse in part.sparse_initializers.values():
            yield from (sparse.values, sparse.indices)
    for node in walk_nodes(graph):
        for attribute in node.attributes.values():
            value = attribute.value
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, Tensor):
                    yield one
                elif isinstance(one, SparseTensor):
                    yield from (one.values, one.indices)

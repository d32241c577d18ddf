"""The payloads that EPContext nodes point to, checked byte by byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.keys import MAP_KEY, MAP_OF_CACHE
from ort_lite.context.payload_sources import CallbackContexts, ContextFiles, EmbeddedContexts
from ort_lite.context.shared_reading import copy_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.mapped_file import MappedFile
    from ctx_formats.notes import ContextNotes
    from ort_lite.context.payload_sources import ContainerSource, SourcedContainer
    from ort_lite.context.shared_reading import SharedPayloads
    from ort_lite.ep.interface import WeightsFile
    from ort_lite.options import SessionOptions
    from ort_lite.trust.verification import Proof


@dataclass(frozen=True, slots=True)
class CheckedPayload:
    """A payload that passed its checks, and the shared weights that it needs, if any."""

    data: memoryview
    weights: WeightsFile | None = None


class PayloadStore:
    """Payloads of one model; each container is read once.

    `close` closes the files; payloads handed out keep their memory.
    """

    def __init__(
        self,
        base: str | None,
        model_path: str | None,
        options: SessionOptions,
        group: SharedPayloads | None = None,
        *,
        proof: Proof | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            base: The folder that paths in nodes are relative to; None if not known.
            model_path: The model file, which may be a symlink.
            options: With the user's read function, which then replaces files altogether.
            group: Files that other sessions of a group have read.
            proof: Of the model's signature, where the session asked for one.
        """
        self._proof = proof
        self._proven: set[SourcedContainer] = set()
        self._is_watched = options.config.get(MAP_KEY) != MAP_OF_CACHE
        self._files = ContextFiles(base, model_path, copy_limit(options), group)
        self._embedded = EmbeddedContexts()
        reader = options.read_data
        self._outside: ContainerSource = CallbackContexts(reader) if reader else self._files

    def payload(
        self,
        node: EpContextNode,
        notes: ContextNotes | None,
        primaries: Sequence[EpContextNode],
        *,
        require_digest: bool = False,
    ) -> CheckedPayload:
        """The node's payload, in which every byte is what was written.

        Args:
            node: Whose payload.
            notes: Its notes, where ort_lite wrote it.
            primaries: The model's nodes with main_context 1, for a node without.
            require_digest: Refuse a context of a producer that records no digests.

        Raises:
            FormatError: With the reason under which a session refuses it.
        """
        sourced = self._read(node) if node.main_context else self._holder(node, notes, primaries)
        container = sourced.container
        if require_digest and not container.has_digests:
            raise FormatError(
                f"EPContext node '{node.name}'",
                f"no digest recorded by '{container.producer}'",
                "a digest (session.require_payload_digest is 1)",
                reason=Reason.INTEGRITY,
            )
        name = node.partition_name or node.name
        if self._proof is not None:
            self._require_proven(self._proof, name, notes, sourced)
        if notes is None:
            return CheckedPayload(container.read_payload(name), sourced.weights(name))
        payload = container.payload(name)
        intact = container.payload_digest(name) == notes.payload_blake3
        if len(payload) != notes.payload_size or not intact:
            raise FormatError(
                f"payload '{name}'",
                f"{len(payload)} bytes that are not the ones written",
                f"{notes.payload_size} bytes with digest {notes.payload_blake3[:16]}...",
                reason=Reason.INTEGRITY,
            )
        if container.weights_digest(name) != notes.weights_blake3:
            raise FormatError(
                f"payload '{name}'.weights",
                "others than the ones it was written with",
                f"weights with digest {notes.weights_blake3[:16]}...",
                reason=Reason.INTEGRITY,
            )
        return CheckedPayload(container.read_payload(name), sourced.weights(name))

    def _require_proven(
        self, proof: Proof, name: str, notes: ContextNotes | None, sourced: SourcedContainer
    ) -> None:
        """Compare a container with the model's signature, which covers notes and what is embedded.

        Notes say which bytes a payload is. Without notes, or where its weights are elsewhere in
        the file, the signature has to cover the file itself.
        """
        container = sourced.container
        entry = container.entries.get(name)
        needed = notes is None or notes.weights_blake3 or (entry is not None and entry.weights)
        if not needed or sourced.location is None or sourced in self._proven:
            return
        head = container.head_size if container.has_digests else None
        proof.require(sourced.location, [container.data], head=head)
        self._proven.add(sourced)

    def __enter__(self) -> Self:
        """Return this store."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the payload files."""
        self.close()

    def mark_taken(self, node: EpContextNode) -> None:
        """Remove a node's partition from those that the session group still offers."""
        self._files.mark_taken(node)

    def to_watch(self) -> tuple[MappedFile, ...]:
        """Files that are mapped and that another process may write to."""
        return self._files.mapped_files() if self._is_watched else ()

    def require_unchanged(self) -> None:
        """Compare every mapped file with its state when it was opened.

        Raises:
            FileChangedError: Another process has written to one.
        """
        self._files.require_unchanged()

    def close(self) -> None:
        """Close all payload files."""
        self._files.close()

    def _read(self, node: EpContextNode) -> SourcedContainer:
        return (self._embedded if node.embed_mode else self._outside).read(node)

    def _holder(
        self,
        node: EpContextNode,
        notes: ContextNotes | None,
        primaries: Sequence[EpContextNode],
    ) -> SourcedContainer:
        """The container of the primary node that has this node's partition.

        Models glued together may hold partitions of one name and other content: the digest
        in the node's notes identifies the one that is meant.
        """
        name = node.partition_name or node.name
        mains = [self._read(p) for p in primaries if p.source == node.source]
        holders = {id(one): one for one in mains if name in one.container.entries}
        for one in holders.values():
            if notes and one.container.entries[name].blake3 == notes.payload_blake3:
                return one
        if len(holders) == 1:
            return next(iter(holders.values()))
        problem = (
            f"{len(holders)} nodes of source '{node.source}' with main_context 1 hold"
            if holders
            else f"no node of source '{node.source}' with main_context 1 holds"
        )
        raise FormatError(
            f"EPContext node '{node.name}'.main_context",
            f"0, and {problem} its partition '{name}'",
            "one that does",
            reason=Reason.MISSING_PAYLOAD,
        )

"""The payloads that EPContext nodes point to: found, read once, checked, handed out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ctx_formats.container import MAGIC
from ctx_formats.container_reader import read_container
from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.mapped_file import MappedFile
from ctx_formats.safe_path import resolve_payload
from ort_lite.context.keys import MAP_KEY, MAP_OF_CACHE
from ort_lite.context.shared_reading import PayloadFile, copy_limit, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.container import Container
    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.notes import ContextNotes
    from ort_lite.context.shared_reading import Workspace
    from ort_lite.context.shared_weights import WeightsFile
    from ort_lite.options import DataReader, SessionOptions
    from ort_lite.trust.verification import Proof


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload that passed its checks, and the shared weights that it needs, if any."""

    data: memoryview
    weights: WeightsFile | None = None


class PayloadStore:
    """Contexts of one model; each is copied or mapped, where it is a file, and its index read once.

    `close` lets go of the files; payloads handed out keep their memory.
    """

    def __init__(
        self,
        base: str | None,
        model_path: str | None,
        options: SessionOptions,
        workspace: Workspace | None = None,
        *,
        proof: Proof | None = None,
    ) -> None:
        """Remember where payloads are.

        Args:
            base: The folder that paths in nodes are relative to; None where none is known.
            model_path: The model file, which may be a symlink.
            options: For the user's read function, which then replaces files altogether.
            workspace: Files that other sessions of a group have read.
            proof: Of the model's signature, where the session asked for one.
        """
        self._proof = proof
        self._proven: set[int] = set()
        self._base = base
        self._model_path = model_path
        self._reader = options.read_data
        self._workspace = workspace
        self._copy_limit = copy_limit(options)
        self._is_watched = options.config.get(MAP_KEY) != MAP_OF_CACHE
        self._files: dict[str, PayloadFile] = {}
        self._containers: dict[str, Container] = {}
        self._embedded: list[tuple[bytes | memoryview, Container]] = []
        self._locations: dict[int, str] = {}

    def payload(
        self,
        node: EpContextNode,
        notes: ContextNotes | None,
        primaries: Sequence[EpContextNode],
        *,
        require_digest: bool = False,
    ) -> Payload:
        """The node's payload, in which every byte is what was written.

        Args:
            node: Whose payload.
            notes: Its notes, where ort_lite wrote it.
            primaries: The model's nodes with main_context 1, for a node without.
            require_digest: Refuse a context of a producer that records no digests.

        Raises:
            FormatError: With the reason under which a session refuses it.
        """
        container = (
            self._container(node) if node.main_context else self._shared(node, notes, primaries)
        )
        if require_digest and not container.has_digests:
            raise FormatError(
                f"EPContext node '{node.name}'",
                f"no digest recorded by '{container.producer}'",
                "a digest (session.require_payload_digest is 1)",
                reason=Reason.INTEGRITY,
            )
        name = node.partition_name or node.name
        if self._proof is not None:
            self._require_proven(self._proof, name, notes, container)
        if notes is None:
            return Payload(container.verified(name), self._weights(container, name))
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
        return Payload(container.verified(name), self._weights(container, name))

    def _require_proven(
        self, proof: Proof, name: str, notes: ContextNotes | None, container: Container
    ) -> None:
        """Compare a container with the model's signature, which covers notes and what is embedded.

        Notes say which bytes a payload is; where there are none, or where its weights lie
        elsewhere in the file, the signature itself has to.
        """
        entry = container.entries.get(name)
        needed = notes is None or notes.weights_blake3 or (entry is not None and entry.weights)
        embedded = any(known is container for _, known in self._embedded)
        if not needed or embedded or id(container) in self._proven:
            return
        location = self._locations[id(container)]
        head = container.head_size if container.has_digests else None
        proof.require(location, [container.data], head=head)
        self._proven.add(id(container))

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close."""
        self.close()

    def taken(self, node: EpContextNode) -> None:
        """A session has this node's partition: it is no longer the group's."""
        for file in self._files.values():
            name = node.partition_name or node.name
            if self._workspace is not None and name in file.container.entries:
                self._workspace.take(file, name)

    def to_watch(self) -> tuple[MappedFile, ...]:
        """Files that are mapped and that another process may write to."""
        if not self._is_watched:
            return ()
        files = (payload.file for payload in self._files.values())
        return tuple(file for file in files if isinstance(file, MappedFile))

    def require_unchanged(self) -> None:
        """Compare every file that is mapped with what it was when it was opened.

        Raises:
            FileChangedError: Another process has written to one.
        """
        for payload in self._files.values():
            payload.file.require_unchanged()

    def close(self) -> None:
        """Let go of every file."""
        for file in self._files.values():
            if self._workspace is None:
                file.close()
            else:
                self._workspace.release(file)
        self._files.clear()
        self._containers.clear()
        self._embedded.clear()
        self._locations.clear()
        self._proven.clear()

    def _shared(
        self,
        node: EpContextNode,
        notes: ContextNotes | None,
        primaries: Sequence[EpContextNode],
    ) -> Container:
        """The container of the primary node that has this node's partition.

        Models glued together may hold partitions of one name and other content: the digest
        in the node's notes tells which is meant.
        """
        name = node.partition_name or node.name
        mains = [self._container(p) for p in primaries if p.source == node.source]
        holders = {id(c): c for c in mains if name in c.entries}
        if notes is not None:
            meant = [c for c in holders.values() if c.entries[name].blake3 == notes.payload_blake3]
            if meant:
                return meant[0]
        if len(holders) == 1:
            return next(iter(holders.values()))
        found = (
            f"{len(holders)} nodes of source '{node.source}' with main_context 1 hold"
            if holders
            else f"no node of source '{node.source}' with main_context 1 holds"
        )
        raise FormatError(
            f"EPContext node '{node.name}'.main_context",
            f"0, and {found} its partition '{name}'",
            "one that does",
            reason=Reason.MISSING_PAYLOAD,
        )

    def _container(self, node: EpContextNode) -> Container:
        if node.embed_mode:
            return self._inside(node)
        container = self._outside(node)
        self._locations[id(container)] = node.payload_path
        return container

    def _outside(self, node: EpContextNode) -> Container:
        if self._reader is not None:
            return self._from_user(node.payload_path, self._reader)
        path = self._path(node)
        if path not in self._files:
            read = opened if self._workspace is None else self._workspace.file
            self._files[path] = read(
                path, lambda file: read_payload_container(file.view, path), self._copy_limit
            )
        return self._files[path].container

    def _weights(self, container: Container, name: str) -> WeightsFile | None:
        """The weights that a payload needs besides; they are read from files alone.

        Raises:
            FormatError: They are not what was written, or there is no file.
        """
        for file in self._files.values():
            if file.container is container:
                return file.weights(name)
        if container.entries[name].weights:
            raise FormatError(
                f"payload '{name}'",
                "its weights are shared, and the container is no file",
                "a payload file beside the model",
                reason=Reason.MISSING_PAYLOAD,
            )
        return None

    def _inside(self, node: EpContextNode) -> Container:
        """The embedded context; the nodes of all partitions in it ask for the same bytes."""
        context = node.ep_cache_context
        for known, container in self._embedded:
            if known is context:
                return container
        container = read_payload_container(memoryview(context), f"context in node '{node.name}'")
        self._embedded.append((context, container))
        return container

    def _from_user(self, name: str, reader: DataReader) -> Container:
        """What the user's read function gives for a name; no file is looked at."""
        if name not in self._containers:
            from ort_lite.context.data import OrtEpContextDataBuffer  # noqa: PLC0415 - lazy: rare

            buffer = OrtEpContextDataBuffer(reader.max_size)
            try:
                reader.func(name, buffer)
                data = buffer.take()
            except Exception as exc:
                raise FormatError(
                    "EP context data",
                    f"the read function failed for '{name}': {exc}",
                    "the payload",
                    reason=Reason.MISSING_PAYLOAD,
                ) from exc
            self._containers[name] = read_payload_container(data, f"EP context data '{name}'")
        return self._containers[name]

    def _path(self, node: EpContextNode) -> str:
        name = node.payload_path
        if self._base is None:
            raise FormatError(
                f"EPContext node '{node.name}'.ep_cache_context",
                f"'{name}', and the model came from memory",
                "the model's path in session option ep.context_file_path",
                reason=Reason.MISSING_PAYLOAD,
            )
        return resolve_payload(self._base, name, model_path=self._model_path)


def read_payload_container(data: memoryview, label: str) -> Container:
    """The container that a context is, found to be one.

    Raises:
        FormatError: It is something else, or malformed.
    """
    start = bytes(data[:64]).lstrip()
    if not start.startswith(MAGIC):
        found = "XML (OpenVINO IR?)" if start.startswith(b"<") else repr(start[:8])
        raise FormatError(
            "context",
            f"starts with {found}",
            "an OVEP_BIN container: a compiled payload",
            file=label,
        )
    try:
        return read_container(data)
    except FormatError as exc:
        raise exc.in_file(label) from exc

"""Sources of containers: where EPContext nodes say that their payloads are, each read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ctx_formats.container import MAGIC
from ctx_formats.container_reader import read_container
from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.mapped_file import MappedFile
from ctx_formats.safe_path import resolve_payload
from ort_lite.context.shared_reading import open_payloads

if TYPE_CHECKING:
    from ctx_formats.container import Container
    from ctx_formats.ep_context import EpContextNode
    from ort_lite.context.shared_reading import PayloadFile, SharedPayloads
    from ort_lite.ep.interface import WeightsFile
    from ort_lite.options import DataReader


@dataclass(frozen=True, slots=True, eq=False)
class SourcedContainer:
    """A container and where it came from.

    Attributes:
        location: As nodes spell it; None for one that is embedded in the model.
        file: None if it came from memory.
    """

    container: Container
    location: str | None = None
    file: PayloadFile | None = None

    def weights(self, name: str) -> WeightsFile | None:
        """The checked weights that a payload refers to; None if it has all of its own.

        Raises:
            FormatError: They are not what was written, or the container is not a file.
        """
        if self.file is not None:
            return self.file.weights(name)
        if self.container.entries[name].weights:
            raise FormatError(
                f"payload '{name}'",
                "its weights are shared, and the container is not a file",
                "a payload file in the model's folder",
                reason=Reason.MISSING_PAYLOAD,
            )
        return None


class ContainerSource(Protocol):
    """A place that EPContext nodes take containers from."""

    def read(self, node: EpContextNode) -> SourcedContainer:
        """The container of a node with main_context 1; the same object for the same container.

        Raises:
            FormatError: It is missing, misplaced or malformed.
        """
        ...


@dataclass(slots=True)
class EmbeddedContexts:
    """Containers inside the nodes; several nodes may hold the same bytes."""

    _read: list[tuple[bytes | memoryview, SourcedContainer]] = field(default_factory=list)

    def read(self, node: EpContextNode) -> SourcedContainer:
        """See ContainerSource."""
        context = node.ep_cache_context
        for known, sourced in self._read:
            if known is context:
                return sourced
        label = f"context in node '{node.name}'"
        sourced = SourcedContainer(read_payload_container(memoryview(context), label))
        self._read.append((context, sourced))
        return sourced


@dataclass(slots=True)
class CallbackContexts:
    """Containers from the user's read function, which replaces files altogether."""

    reader: DataReader
    _read: dict[str, SourcedContainer] = field(default_factory=dict)

    def read(self, node: EpContextNode) -> SourcedContainer:
        """See ContainerSource."""
        name = node.payload_path
        if name not in self._read:
            container = read_payload_container(self._call(name), f"EP context data '{name}'")
            self._read[name] = SourcedContainer(container, name)
        return self._read[name]

    def _call(self, name: str) -> memoryview:
        from ort_lite.context.data import OrtEpContextDataBuffer  # noqa: PLC0415 - lazy: rare

        buffer = OrtEpContextDataBuffer(self.reader.max_size)
        try:
            self.reader.func(name, buffer)
            return buffer.take()
        except Exception as exc:
            raise FormatError(
                "EP context data",
                f"the read function failed for '{name}': {exc}",
                "the payload",
                reason=Reason.MISSING_PAYLOAD,
            ) from exc


@dataclass(slots=True)
class ContextFiles:
    """Payload files, copied or mapped.

    Attributes:
        base: The folder that paths in nodes are relative to; None if not known.
        model_path: The model file, which may be a symlink.
        copy_limit: In bytes; larger files are mapped.
        group: Files that the sessions of a group share; None outside of groups.
    """

    base: str | None
    model_path: str | None
    copy_limit: int
    group: SharedPayloads | None = None
    _files: list[PayloadFile] = field(default_factory=list)
    _read: dict[str, SourcedContainer] = field(default_factory=dict)

    def read(self, node: EpContextNode) -> SourcedContainer:
        """See ContainerSource."""
        path = self._path(node)
        if path not in self._read:
            read = open_payloads if self.group is None else self.group.file
            file = read(path, lambda f: read_payload_container(f.view, path), self.copy_limit)
            self._files.append(file)
            self._read[path] = SourcedContainer(file.container, node.payload_path, file)
        return self._read[path]

    def mark_taken(self, node: EpContextNode) -> None:
        """Remove a node's partition from those that the group still offers."""
        name = node.partition_name or node.name
        for file in self._files:
            if self.group is not None and name in file.container.entries:
                self.group.take(file, name)

    def mapped_files(self) -> tuple[MappedFile, ...]:
        """Files that are mapped, not copied."""
        files = (payload.file for payload in self._files)
        return tuple(file for file in files if isinstance(file, MappedFile))

    def require_unchanged(self) -> None:
        """Compare every mapped file with its state when it was opened.

        Raises:
            FileChangedError: Another process has written to one.
        """
        for payload in self._files:
            payload.file.require_unchanged()

    def close(self) -> None:
        """Close the files; payloads keep their memory."""
        for file in self._files:
            if self.group is None:
                file.close()
            else:
                self.group.release(file)
        self._files.clear()
        self._read.clear()

    def _path(self, node: EpContextNode) -> str:
        name = node.payload_path
        if self.base is None:
            raise FormatError(
                f"EPContext node '{node.name}'.ep_cache_context",
                f"'{name}', and the model came from memory",
                "the model's path in session option ep.context_file_path",
                reason=Reason.MISSING_PAYLOAD,
            )
        return resolve_payload(self.base, name, model_path=self.model_path)


def read_payload_container(data: memoryview, label: str) -> Container:
    """Parse the container in a context.

    Raises:
        FormatError: It is something else, or malformed.
    """
    start = bytes(data[:64]).lstrip()
    if not start.startswith(MAGIC):
        content = "XML (OpenVINO IR?)" if start.startswith(b"<") else repr(start[:8])
        raise FormatError(
            "context",
            f"starts with {content}",
            "an OVEP_BIN container: a compiled payload",
            file=label,
        )
    try:
        return read_container(data)
    except FormatError as exc:
        raise exc.in_file(label) from exc

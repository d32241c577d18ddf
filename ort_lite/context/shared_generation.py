"""Files that the sessions of a group have written, published together when the group ends."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import create_sibling_file, publish, publish_new
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import encode_model
from ctx_formats.removal import remove_file
from ctx_formats.shared_container import Mark, NoRoomError, SharedContainerWriter
from ort_lite.context.destinations import Stored, export_function
from ort_lite.context.max_size import largest_in, with_max_size
from ort_lite.context.target import exists_already
from ort_lite.ep.interface import SupportsWeightSharing
from ort_lite.session_log import get_logger
from ort_lite.status import Fail, InvalidArgument
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

    from ctx_formats.container import Entry
    from ort_lite.context.destinations import PayloadFiles
    from ort_lite.planning.prepared_graph import Partition
    from ort_lite.trust.private_keys import Signer

log = get_logger(__name__)


class _AbandonedError(Exception):
    """Raised to abandon a file that is being written."""


@dataclass(slots=True)
class _File:
    """A file that is being written under a temporary name; closed by `finish` or `discard`."""

    path: Path
    temporary: Path
    _open: ExitStack

    def finish(self) -> None:
        self._open.close()

    def discard(self) -> None:
        with suppress(_AbandonedError):
            self._open.__exit__(_AbandonedError, _AbandonedError(), None)
        with suppress(OSError):
            remove_file(self.temporary)


@dataclass(slots=True)
class _Model:
    file: _File
    replace: bool
    signer: Signer | None

    def sign(self) -> None:
        """Append a signature; payload files have been published.

        Raises:
            Fail: A file that it covers cannot be found.
            OSError: The folder is full.
        """
        if self.signer is None:
            return
        from ort_lite.context.signing import signature_of  # noqa: PLC0415 - lazy: rare

        data = memoryview(self.file.temporary.read_bytes())  # not mapped: see _agree_on_max_size
        entries = signature_of([data], read_model(data), self.file.path.parent, self.signer)
        with self.file.temporary.open("ab") as out:
            out.write(entries)
            out.flush()
            os.fsync(out.fileno())


@dataclass(slots=True)
class _Container:
    file: _File
    writer: SharedContainerWriter


@dataclass(slots=True)
class Stage:
    """The unpublished files of a group: containers by EP, models; and partition names."""

    names: dict[str, int] = field(default_factory=dict)
    _containers: dict[str, _Container] = field(default_factory=dict)
    _models: list[_Model] = field(default_factory=list)

    @property
    def models(self) -> tuple[Path, ...]:
        """Context models that wait for publishing."""
        return tuple(model.file.path for model in self._models)

    def store(
        self, ep: str, parts: Mapping[str, Partition], files: PayloadFiles, *, whole: bool
    ) -> Stored:
        """Add the payloads of one EP's partitions; the first session names the file.

        Args:
            ep: Name of the EP.
            parts: Partitions by payload name.
            files: Where the session would write them without a group.
            whole: Whether payloads hold all of their weights.

        Raises:
            InvalidArgument: The model's path cannot refer to the file.
            Fail: There are more payloads than one file holds.
            OSError: The folder cannot be written to or is full.
            EPFail: The EP cannot export.
        """
        container = self._containers.get(ep) or self._start_container(ep, files)
        reference = _reference(container.file.path, files)
        writer = container.writer
        try:
            entries = {name: _add(writer, name, part, whole=whole) for name, part in parts.items()}
        except NoRoomError as exc:
            raise Fail(f"{files.base}: {exc}") from exc
        weights = {n: writer.weights_digest(e) for n, e in entries.items() if e.weights}
        return Stored(entries, reference.encode(), weights)

    def add_model(
        self,
        pieces: Sequence[bytes | memoryview],
        path: Path,
        *,
        overwrite: bool,
        signer: Signer | None,
    ) -> None:
        """See destinations.StagesModels."""
        if path in self.models:
            raise FileExistsError(path)
        file, out = _start_file(path)
        self._models.append(_Model(file, overwrite, signer))
        for piece in pieces:
            out.write(piece)
        file.finish()

    def mark(self) -> tuple[dict[str, Mark], int]:
        """The present state, between two sessions."""
        return {ep: c.writer.mark() for ep, c in self._containers.items()}, len(self._models)

    def rewind(self, mark: tuple[dict[str, Mark], int]) -> None:
        """Forget what a session that failed has added."""
        containers, models = mark
        for ep in [ep for ep in self._containers if ep not in containers]:
            self._containers.pop(ep).file.discard()
        for ep, state in containers.items():
            self._containers[ep].writer.rewind(state)
        while len(self._models) > models:
            self._models.pop().file.discard()

    def publish(self) -> None:
        """Give every file its name: containers, then the models that name them.

        Raises:
            Fail: A file cannot be written or is there already; then none of the new ones is.
        """
        done: list[Path] = []
        try:
            self._agree_on_max_size()
            for container in self._containers.values():
                if container.writer.names:
                    container.writer.finish(PRODUCER)
                    container.file.finish()
                    done.append(publish_new(container.file.temporary, [container.file.path]))
            for model in sorted(self._models, key=lambda m: m.replace):
                model.sign()
                publish(model.file.temporary, model.file.path, replace=model.replace)
                if not model.replace:
                    done.append(model.file.path)
                log.info("wrote %s", model.file.path)
        except BaseException as exc:
            for path in done:
                with suppress(FileNotFoundError):
                    path.unlink()
            if isinstance(exc, FileExistsError):
                raise exists_already(Path(str(exc.filename2 or exc.filename))) from exc
            if isinstance(exc, OSError | ValueError):
                raise Fail(f"the shared contexts cannot be written: {exc}") from exc
            raise
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove everything that was not published."""
        for container in self._containers.values():
            container.file.discard()
        for model in self._models:
            model.file.discard()
        self._containers.clear()
        self._models.clear()

    def _agree_on_max_size(self) -> None:
        """Let every context record the size of the largest, where contexts record one.

        Raises:
            FormatError: A model is over 2 GiB.
            OSError: The folder cannot be written to or is full.
        """
        # Read, not mapped: Windows removes no file that is mapped.
        written = [
            read_model(memoryview(model.file.temporary.read_bytes())) for model in self._models
        ]
        sizes = largest_in(written)
        for model, read in zip(self._models, written, strict=True):
            agreed = with_max_size(read, sizes)
            if agreed is read:
                continue
            smaller = model.file
            model.file, out = _start_file(smaller.path)
            smaller.discard()
            for piece in encode_model(agreed):
                out.write(piece)
            model.file.finish()

    def _start_container(self, ep: str, files: PayloadFiles) -> _Container:
        path = files.path(ep)
        if path.exists() or path.is_symlink():
            path = path.with_name(f"{path.stem}-{token_hex(6)}{path.suffix}")
        file, out = _start_file(path)
        self._containers[ep] = _Container(file, SharedContainerWriter(out, file.temporary))
        return self._containers[ep]


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """The destination of a session that belongs to a group; see destinations.StagesModels.

    Attributes:
        files: Where the session would write its payloads without a group.
        whole: Whether payloads hold all of their weights.
    """

    stage: Stage
    files: PayloadFiles
    whole: bool

    @property
    def names(self) -> dict[str, int]:
        """How often the group has used each partition name."""
        return self.stage.names

    def store(self, ep: str, parts: Mapping[str, Partition]) -> Stored:
        """As `Stage.store`."""
        return self.stage.store(ep, parts, self.files, whole=self.whole)

    def withdraw(self) -> None:
        """Do nothing: the group rewinds its stage where a session fails."""

    def add_model(
        self,
        pieces: Sequence[bytes | memoryview],
        path: Path,
        *,
        overwrite: bool,
        signer: Signer | None,
    ) -> None:
        """As `Stage.add_model`."""
        self.stage.add_model(pieces, path, overwrite=overwrite, signer=signer)


def _start_file(path: Path) -> tuple[_File, BinaryIO]:
    stack = ExitStack()
    out, temporary = stack.enter_context(create_sibling_file(path))
    return _File(path, temporary, stack), out


def _reference(payload: Path, files: PayloadFiles) -> str:
    """The payload file's path relative to the model's folder."""
    base = files.base
    assert base is not None, "the payload file was named after it"
    path = Path(os.path.relpath(payload.parent.resolve(), base.parent.resolve())) / payload.name
    if path.is_absolute() or ".." in path.parts:
        raise InvalidArgument(
            f"{base} is in a session group whose contexts go to {payload}; its context model "
            "must be in the same folder or above"
        )
    if ":" in path.as_posix():
        raise InvalidArgument(
            f"the payloads of {base} are in {path.parent.as_posix()}, and no folder on the way "
            "to a payload may have a colon in its name: rename it"
        )
    return path.as_posix()


def _add(writer: SharedContainerWriter, name: str, part: Partition, *, whole: bool) -> Entry:
    if isinstance(part.ep, SupportsWeightSharing) and not whole:
        entry = writer.add_payload(name, _export_shared(part, part.ep, writer))
        if entry is not None:
            return entry
    entry = writer.add_payload(name, _export_whole(part))
    assert entry is not None, "a whole payload is never declined"
    return entry


def _export_shared(
    part: Partition, ep: SupportsWeightSharing, writer: SharedContainerWriter
) -> Callable[[BinaryIO], bool]:
    return lambda out: ep.export_shared(part.compiled, writer, out)


def _export_whole(part: Partition) -> Callable[[BinaryIO], bool]:
    def produce(out: BinaryIO) -> bool:
        export_function(part)(out)
        return True

    return produce

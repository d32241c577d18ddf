"""What the sessions of a group have compiled, kept until the group publishes it at once."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import publish, publish_new, written_beside
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import encode_model
from ctx_formats.removal import remove_file
from ctx_formats.shared_container import Mark, NoRoomError, SharedContainerWriter
from ort_lite.context.max_size import largest_in, with_max_size
from ort_lite.context.payloads import Stored, exporter
from ort_lite.context.shared_weights import SupportsWeightSharing
from ort_lite.context.target import exists_already
from ort_lite.session_log import get_logger
from ort_lite.status import Fail, InvalidArgument
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from ctx_formats.container import Entry
    from ort_lite.context.target import ContextTarget
    from ort_lite.planning.preparation import Partition
    from ort_lite.trust.private_keys import Signer

log = get_logger(__name__)


class _GivenUpError(Exception):
    """Ends the writing of a file that is not to be."""


@dataclass(slots=True)
class _File:
    """A file that is being written under a temporary name; closed by `finish` or `discard`."""

    path: Path
    temporary: Path
    _open: ExitStack

    def finish(self) -> None:
        self._open.close()

    def discard(self) -> None:
        with suppress(_GivenUpError):
            self._open.__exit__(_GivenUpError, _GivenUpError(), None)
        with suppress(OSError):
            remove_file(self.temporary)


@dataclass(slots=True)
class _Model:
    file: _File
    replace: bool
    signer: Signer | None

    def sign(self) -> None:
        """Put a signature behind it; payload files have their names and their content by now.

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
    """The shared workspace of one generation: containers by EP, models, partition names."""

    names: dict[str, int] = field(default_factory=dict)
    _containers: dict[str, _Container] = field(default_factory=dict)
    _models: list[_Model] = field(default_factory=list)

    @property
    def models(self) -> tuple[Path, ...]:
        """Context models that wait for the end."""
        return tuple(model.file.path for model in self._models)

    def store(self, parts: Sequence[Partition], ep: str, target: ContextTarget) -> Stored:
        """Add the payloads of one EP's partitions; the first session names the file.

        Raises:
            InvalidArgument: The model would lie where it cannot refer to the file.
            Fail: There are more payloads than one file holds.
            OSError: The folder cannot be written to or is full.
            EPFail: The EP cannot export.
        """
        container = self._containers.get(ep) or self._opened(ep, target)
        reference = _reference(container.file.path, target)
        entries: dict[str, Entry] = {}
        for part in parts:
            name = target.prefix + part.name
            try:
                entry = _added(container.writer, name, part, whole=target.whole_payloads)
            except NoRoomError as exc:
                raise Fail(f"{target.described}: {exc}") from exc
            entries[name] = entry
        weights = {n: container.writer.weights_digest(e) for n, e in entries.items() if e.weights}
        return Stored(entries, reference.encode(), weights)

    def add_model(self, pieces: Sequence[bytes | memoryview], target: ContextTarget) -> None:
        """Write a context model beside its place.

        Raises:
            FileExistsError: Another session of the group has this place.
            OSError: The folder cannot be written to or is full.
        """
        path = target.model_path
        assert path is not None, "groups write files"
        if path in self.models:
            raise FileExistsError(path)
        file, out = _started(path)
        self._models.append(_Model(file, target.overwrite, target.signer))
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
            model.file, out = _started(smaller.path)
            smaller.discard()
            for piece in encode_model(agreed):
                out.write(piece)
            model.file.finish()

    def _opened(self, ep: str, target: ContextTarget) -> _Container:
        path = target.payload_path(ep)
        if path.exists() or path.is_symlink():
            path = path.with_name(f"{path.stem}-{token_hex(6)}{path.suffix}")
        file, out = _started(path)
        self._containers[ep] = _Container(file, SharedContainerWriter(out, file.temporary))
        return self._containers[ep]


def _started(path: Path) -> tuple[_File, BinaryIO]:
    stack = ExitStack()
    out, temporary = stack.enter_context(written_beside(path))
    return _File(path, temporary, stack), out


def _reference(payload: Path, target: ContextTarget) -> str:
    """The payload file as seen from the model's folder."""
    base = target.payload_base
    assert base is not None, "the payload file was named after it"
    found = Path(os.path.relpath(payload.parent.resolve(), base.parent.resolve())) / payload.name
    if found.is_absolute() or ".." in found.parts:
        raise InvalidArgument(
            f"{base} is in a session group whose contexts go to {payload}; its context model "
            "must lie in the same folder or above"
        )
    if ":" in found.as_posix():
        raise InvalidArgument(
            f"the payloads of {base} are in {found.parent.as_posix()}, and no folder on the way "
            "to a payload may have a colon in its name: rename it"
        )
    return found.as_posix()


def _added(writer: SharedContainerWriter, name: str, part: Partition, *, whole: bool) -> Entry:
    if isinstance(part.ep, SupportsWeightSharing) and not whole:
        entry = writer.add_payload(name, _sharing(part, part.ep, writer))
        if entry is not None:
            return entry
    entry = writer.add_payload(name, _whole(part))
    assert entry is not None, "a whole payload is never declined"
    return entry


def _sharing(
    part: Partition, ep: SupportsWeightSharing, writer: SharedContainerWriter
) -> Callable[[BinaryIO], bool]:
    return lambda out: ep.export_shared(part.compiled, writer, out)


def _whole(part: Partition) -> Callable[[BinaryIO], bool]:
    def produce(out: BinaryIO) -> bool:
        exporter(part)(out)
        return True

    return produce

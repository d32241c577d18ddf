"""Where the payloads of a context model go: into the model, a file, or the user's hands."""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Protocol

from blake3 import blake3

from ctx_formats.atomic_write import publish_new, written_beside
from ctx_formats.container_writer import write_container
from ort_lite.context.data import OrtEpContextData
from ort_lite.execution_provider import SupportsEpContext
from ort_lite.status import Fail, OrtLiteError
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ctx_formats.container import Entry
    from ort_lite.context.target import ContextTarget
    from ort_lite.planning.preparation import Partition

    Exporter = Callable[[BinaryIO], None]


@dataclass(frozen=True, slots=True)
class Stored:
    """The payloads of one EP.

    Attributes:
        entries: By partition name.
        reference: What nodes say in `ep_cache_context`: a file name, or the container.
        weights: Digests, by partition name, over the shared weights of each.
    """

    entries: Mapping[str, Entry]
    reference: bytes
    weights: Mapping[str, str] = field(default_factory=dict)


class PayloadPlace(Protocol):
    """A place for containers that names them itself."""

    def store(self, payloads: Sequence[tuple[str, Exporter]]) -> Stored:
        """Keep the payloads of one EP.

        Args:
            payloads: Partition names, and what streams each payload into a file object.

        Raises:
            OSError: They cannot be written.
        """
        ...


@dataclass(slots=True)
class PayloadWriter:
    """Stores payloads; `withdraw` takes back what it published if the model fails."""

    target: ContextTarget
    _published: list[Path] = field(default_factory=list)

    def store(self, parts: Sequence[Partition], ep: str) -> Stored:
        """Put the payloads of one EP's partitions into one container.

        Raises:
            OSError: The folder cannot be written to or is full.
            EPFail: The EP cannot export.
            Fail: The user's write function raised; its error is the cause.
        """
        target = self.target
        if target.stage is not None:
            return target.stage.store(parts, ep, target)
        payloads = [(target.prefix + part.name, exporter(part)) for part in parts]
        if target.place is not None:
            return target.place.store(payloads)
        if target.embed or target.write_data is not None:
            memory = io.BytesIO()
            entries = write_container(memory, payloads, PRODUCER)
            return self._in_memory(memory, entries, ep)
        path = target.payload_path(ep)
        with written_beside(path) as (file, temporary):
            entries = write_container(file, payloads, PRODUCER)
        path = publish_new(temporary, list(_names(path, entries)))
        self._published.append(path)
        return Stored({e.name: e for e in entries}, path.name.encode())

    def withdraw(self) -> None:
        """Remove the files that were published."""
        for path in self._published:
            with suppress(FileNotFoundError):
                path.unlink()

    def _in_memory(self, memory: io.BytesIO, entries: Sequence[Entry], ep: str) -> Stored:
        by_name = {entry.name: entry for entry in entries}
        if self.target.write_data is None:
            return Stored(by_name, memory.getvalue())
        name = self.target.payload_name(ep)
        try:
            self.target.write_data(name, OrtEpContextData(memory.getbuffer()))
        except OrtLiteError:
            raise
        except Exception as exc:
            raise Fail(f"the EP context data write function failed for '{name}': {exc}") from exc
        return Stored(by_name, name.encode())


def exporter(part: Partition) -> Exporter:
    """What streams a partition's payload."""
    ep = part.ep
    assert isinstance(ep, SupportsEpContext), "only such partitions are kept"
    return lambda out: ep.export_model(part.compiled, out)


def _names(path: Path, entries: Sequence[Entry]) -> Iterator[Path]:
    """The usual name; where a file has it already, names that carry the content.

    The file that is there may belong to a context model that somebody is running.
    """
    yield path
    content = blake3("".join(entry.blake3 for entry in entries).encode()).hexdigest()
    yield path.with_name(f"{path.stem}-{content[:12]}{path.suffix}")
    yield path.with_name(f"{path.stem}-{content[:12]}-{token_hex(4)}{path.suffix}")

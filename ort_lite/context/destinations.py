"""Destinations for the payloads of a context model: the model, files, or the user's function.

A session group (shared_generation.py) and the model cache (model_cache/objects.py) have one each.
"""

from __future__ import annotations

import io
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from blake3 import blake3

from ctx_formats.atomic_write import create_sibling_file, publish_new
from ctx_formats.container_writer import write_container
from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.context.data import OrtEpContextData
from ort_lite.context.keys import PATH_KEY
from ort_lite.ep.interface import SupportsEpContext
from ort_lite.status import Fail, InvalidArgument, OrtLiteError
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ctx_formats.container import Entry
    from ort_lite.context.data import WriteFunc
    from ort_lite.planning.prepared_graph import Partition
    from ort_lite.trust.private_keys import Signer

    Exporter = Callable[[BinaryIO], None]


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored payloads of one EP.

    Attributes:
        entries: Container entries by payload name.
        reference: Value of `ep_cache_context`: a file name, or the embedded container.
        weights: Digest of the shared weights of each payload that has any, by payload name.
    """

    entries: Mapping[str, Entry]
    reference: bytes
    weights: Mapping[str, str] = field(default_factory=dict)


class Destination(Protocol):
    """Stores the payloads of one context model; `withdraw` removes them if the model fails."""

    def store(self, ep: str, parts: Mapping[str, Partition]) -> Stored:
        """Put the payloads of one EP's partitions into one container.

        Args:
            ep: Name of the EP.
            parts: Partitions by payload name.

        Raises:
            OSError: The folder cannot be written to or is full.
            EPFail: The EP cannot export.
            Fail: The payloads do not fit, or the user's write function failed.
            InvalidArgument: There is no path to write to.
        """
        ...

    def withdraw(self) -> None:
        """Remove what was stored."""
        ...


@runtime_checkable
class StagesModels(Destination, Protocol):
    """A destination that also keeps the context model until its session group is published."""

    @property
    def names(self) -> dict[str, int]:
        """How often the group has used each partition name."""
        ...

    def add_model(
        self,
        pieces: Sequence[bytes | memoryview],
        path: Path,
        *,
        overwrite: bool,
        signer: Signer | None,
    ) -> None:
        """Write a context model to a temporary file; it gets its name and signature later.

        Raises:
            FileExistsError: Another session of the group writes to `path`.
            OSError: The folder cannot be written to or is full.
        """
        ...


@dataclass(slots=True)
class PayloadFiles:
    """Payload files `<stem of base>_<EP>.bin` in the folder of `base`.

    Attributes:
        base: None if no path is known; `store` then fails.
    """

    base: Path | None
    _published: list[Path] = field(default_factory=list)

    def path(self, ep: str) -> Path:
        """Path of the payloads of one EP.

        Raises:
            InvalidArgument: No path is known.
        """
        if self.base is None:
            raise InvalidArgument(
                "the compiled data has no destination: embed it into the model, or set "
                f"{PATH_KEY} to the model's future path"
            )
        return self.base.with_name(payload_name(self.base, ep))

    def store(self, ep: str, parts: Mapping[str, Partition]) -> Stored:
        """See Destination; no file that exists is written into."""
        path = self.path(ep)
        with create_sibling_file(path) as (file, temporary):
            entries = write_container(file, exporters(parts), PRODUCER)
        path = publish_new(temporary, list(_candidate_paths(path, entries)))
        self._published.append(path)
        return Stored({e.name: e for e in entries}, path.name.encode())

    def withdraw(self) -> None:
        """Remove the published files."""
        for path in self._published:
            with suppress(FileNotFoundError):
                path.unlink()
        self._published.clear()


@dataclass(frozen=True, slots=True)
class Embedded:
    """Payloads inside the EPContext nodes.

    Attributes:
        overflow: Used instead where the model would exceed 2 GiB; None if no path is known.
    """

    overflow: PayloadFiles | None = None

    def store(self, ep: str, parts: Mapping[str, Partition]) -> Stored:  # noqa: ARG002 - see Destination
        """See Destination."""
        memory = io.BytesIO()
        entries = write_container(memory, exporters(parts), PRODUCER)
        return Stored({e.name: e for e in entries}, memory.getvalue())

    def withdraw(self) -> None:
        """Do nothing: the bytes are part of the model."""


@dataclass(frozen=True, slots=True)
class Callback:
    """The user's write function, called once per EP with a file name and the container.

    Attributes:
        base: Path whose stem the file names begin with; None for "model".
    """

    write: WriteFunc
    base: Path | None

    def store(self, ep: str, parts: Mapping[str, Partition]) -> Stored:
        """See Destination."""
        memory = io.BytesIO()
        entries = write_container(memory, exporters(parts), PRODUCER)
        name = payload_name(self.base, ep)
        try:
            self.write(name, OrtEpContextData(memoryview(memory.getvalue())))
        except OrtLiteError:
            raise
        except Exception as exc:
            raise Fail(f"the EP context data write function failed for '{name}': {exc}") from exc
        return Stored({e.name: e for e in entries}, name.encode())

    def withdraw(self) -> None:
        """Do nothing: the data is the user's."""


def payload_name(base: Path | None, ep: str) -> str:
    """File name of the payloads of one EP, without colons: see ctx_formats.safe_path."""
    stem = base.stem if base is not None else "model"
    return f"{stem}_{ep}.bin".replace(":", "_")


def exporters(parts: Mapping[str, Partition]) -> list[tuple[str, Exporter]]:
    """Payload names with the functions that stream the payloads, for `write_container`."""
    return [(name, export_function(part)) for name, part in parts.items()]


def export_function(part: Partition) -> Exporter:
    """The function that streams a partition's payload into a file object."""
    ep = part.ep
    assert isinstance(ep, SupportsEpContext), "only such partitions have payloads"
    return lambda out: ep.export_model(part.compiled, out)


def _candidate_paths(path: Path, entries: Sequence[Entry]) -> Iterator[Path]:
    """The usual path, then paths with a digest of the content for where that file exists.

    An existing file may belong to a context model that another process is running.
    """
    yield path
    content = blake3("".join(entry.blake3 for entry in entries).encode()).hexdigest()
    yield path.with_name(f"{path.stem}-{content[:12]}{path.suffix}")
    yield path.with_name(f"{path.stem}-{content[:12]}-{token_hex(4)}{path.suffix}")

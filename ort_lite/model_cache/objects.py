"""Writes a context model into the cache as immutable files that are named by their content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.atomic_write import publish, written_beside
from ctx_formats.container_writer import write_container
from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.context.payloads import Stored
from ort_lite.model_cache.entry import CacheObject
from ort_lite.model_cache.verification import file_problem
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ort_lite.context.payloads import Exporter

READ_ONLY = 0o444


@dataclass(slots=True)
class ObjectWriter:
    """Writes the objects of one entry.

    An object that is there already is replaced by its equal, so that a damaged one heals.

    Attributes:
        folder: Where objects lie.
        payloads: Containers written so far.
        written: All that was written so far.
    """

    folder: Path
    payloads: list[CacheObject] = field(default_factory=list)
    written: list[CacheObject] = field(default_factory=list)

    def store(self, payloads: Sequence[tuple[str, Exporter]]) -> Stored:
        """Put payloads into a container; see PayloadPlace.

        Raises:
            OSError: The folder cannot be written to or is full; nothing is left behind.
        """
        with written_beside(self.folder / "payload") as (file, temporary):
            entries = write_container(file, payloads, PRODUCER)
            size = file.tell()
            name = f"{_head_digest(file, min(entry.offset for entry in entries))}.bin"
        self.payloads.append(self._published(temporary, name, size))
        return Stored({entry.name: entry for entry in entries}, name.encode())

    def write_model(self, pieces: Sequence[bytes | memoryview]) -> CacheObject:
        """Write the context model.

        Raises:
            OSError: As `store`.
        """
        digest = blake3()
        with written_beside(self.folder / "model") as (file, temporary):
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
            size = file.tell()
        return self._published(temporary, f"{digest.hexdigest()}.onnx", size)

    def _published(self, temporary: Path, name: str, size: int) -> CacheObject:
        temporary.chmod(READ_ONLY)
        path, one = self.folder / name, CacheObject(name, size)
        try:
            publish(temporary, path, replace=True)
        except PermissionError:
            # On Windows a session that has mapped the object keeps it from being replaced.
            if file_problem(path, one):
                raise
        self.written.append(one)
        return one


def _head_digest(file: BinaryIO, size: int) -> str:
    """Digest of header and index, which name every payload by digest, size and offset."""
    file.seek(0)
    return blake3(file.read(size)).hexdigest()

"""Writes a context model into the cache as immutable files that are named by their content."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.container_writer import write_container
from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.context.destinations import Stored, exporters
from ort_lite.model_cache.entry import CacheObject
from ort_lite.model_cache.verification import file_problem
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ort_lite.context.destinations import Exporter
    from ort_lite.model_cache.store import CacheStore
    from ort_lite.planning.prepared_graph import Partition


@dataclass(slots=True)
class ObjectWriter:
    """Writes the objects of one entry; a destination of payloads (context/destinations.py).

    An existing object is replaced by its equal, which repairs a damaged one.

    Attributes:
        cache: The cache that the objects belong to.
        payloads: Containers written so far.
    """

    cache: CacheStore
    payloads: list[CacheObject] = field(default_factory=list)
    _written: list[CacheObject] = field(default_factory=list)

    def store(self, ep: str, parts: Mapping[str, Partition]) -> Stored:  # noqa: ARG002 - named by content
        """Put the payloads of one EP into a container.

        Raises:
            OSError: The folder cannot be written to or is full; nothing is left behind.
            EPFail: The EP cannot export.
        """
        return self.store_payloads(exporters(parts))

    def store_payloads(self, payloads: Sequence[tuple[str, Exporter]]) -> Stored:
        """As `store`, given each payload's name and what streams it."""
        with create_sibling_file(self.cache.objects / "payload") as (file, temporary):
            entries = write_container(file, payloads, PRODUCER)
            size = file.tell()
            name = f"{_head_digest(file, min(entry.offset for entry in entries))}.bin"
        self.payloads.append(self._publish(temporary, name, size))
        return Stored({entry.name: entry for entry in entries}, name.encode())

    def withdraw(self) -> None:
        """Remove the objects that no entry names; those that cannot be removed stay."""
        with suppress(OSError):  # where nothing can be removed, little was written
            self.cache.discard(self._written)

    def write_model(self, pieces: Sequence[bytes | memoryview]) -> CacheObject:
        """Write the context model.

        Raises:
            OSError: As `store`.
        """
        digest = blake3()
        with create_sibling_file(self.cache.objects / "model") as (file, temporary):
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
            size = file.tell()
        return self._publish(temporary, f"{digest.hexdigest()}.onnx", size)

    def _publish(self, temporary: Path, name: str, size: int) -> CacheObject:
        protect_object(temporary)
        path, one = self.cache.objects / name, CacheObject(name, size)
        try:
            publish(temporary, path, replace=True)
        except PermissionError:
            # On Windows a session that has mapped the object keeps it from being replaced.
            if file_problem(path, one):
                raise
        self._written.append(one)
        return one


def protect_object(path: Path) -> None:
    """Take away the right to write to a finished object, which never changes.

    Not on Windows, where what is read-only cannot be removed either: neither `shutil.rmtree` nor
    an ort_lite before this one would get rid of the cache.
    """
    if os.name == "posix":
        path.chmod(0o444)


def _head_digest(file: BinaryIO, size: int) -> str:
    """Digest of header and index, which name every payload by digest, size and offset."""
    file.seek(0)
    return blake3(file.read(size)).hexdigest()

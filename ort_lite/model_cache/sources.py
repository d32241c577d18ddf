"""Digests of plain models, remembered by what the file system says about their files.

A model is digested once; the digest is taken again for as long as path, device, inode, size,
mtime and ctime of every file of the model stay what they were. A change that keeps all of these
needs a clock set back, or a write within the clock's tick: files younger than `YOUNG_NS` are not
remembered at all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from ctx_formats.mapped_file import FileStamp
    from ort_lite.model.loader import LoadedModel

FORMAT = 1
YOUNG_NS = 1_000_000_000
MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """What tells one version of a file from another without reading it."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> SourceFile:
        """The file as it is now.

        Raises:
            OSError: It is not there.
        """
        found = Path(path).stat()
        return cls(
            path=str(Path(path).absolute()),
            device=found.st_dev,
            inode=found.st_ino,
            size=found.st_size,
            mtime_ns=found.st_mtime_ns,
            ctime_ns=found.st_ctime_ns,
        )

    def to_json(self) -> dict[str, str | int]:
        """Plain values, by the names of the constructor's arguments."""
        return {name: getattr(self, name) for name in SourceFile.__slots__}

    def is_version(self, stamp: FileStamp) -> bool:
        """Whether the bytes that were read are of this version."""
        found = (self.device, self.inode, self.size, self.mtime_ns, self.ctime_ns)
        return found == (
            stamp.device,
            stamp.inode,
            stamp.size,
            stamp.mtime_ns,
            stamp.ctime_ns,
        )


@dataclass(frozen=True, slots=True)
class Source:
    """A model's digest, and the files that it was made of.

    Attributes:
        digest: BLAKE3 in hex over the model's bytes and each file of external data, with the
            names under which the model knows them.
        files: Empty for a model from memory.
    """

    digest: str
    files: tuple[SourceFile, ...]

    def is_unchanged(self) -> bool:
        """Whether every file is still the one that was digested."""
        try:
            return all(SourceFile.of(file.path) == file for file in self.files)
        except OSError:
            return False


def read_source(loaded: LoadedModel) -> Source | None:
    """Digest a model; None where a file changed while it was read."""
    pieces = [("", loaded.data), *((name, m.view) for name, m in loaded.external.files())]
    summary = blake3()
    for name, data in pieces:
        digest = blake3(data, max_threads=blake3.AUTO).digest()
        summary.update(json.dumps([name, len(data)]).encode() + digest)
    maps = [m for _, m in loaded.external.files()]
    if loaded.owner is not None:
        maps.insert(0, loaded.owner)
    try:
        files = tuple(SourceFile.of(mapped.path) for mapped in maps)
    except OSError:
        return None
    if not all(file.is_version(m.stamp) for file, m in zip(files, maps, strict=True)):
        return None
    return Source(summary.hexdigest(), files)


class SourceStamps:
    """Remembered digests, one small file for each path of a model."""

    def __init__(self, folder: Path) -> None:
        """`folder` need not exist."""
        self._folder = folder

    def known(self, path: Path, weights: str) -> Source | None:
        """The digest of the model at `path`, if it was digested and nothing changed since.

        Args:
            path: Of the model file.
            weights: The folder that the session takes external data from, or "".
        """
        source = _read(self._stamp(path, weights))
        if source is None or source.files[0].path != str(path.absolute()):
            return None
        return source if source.is_unchanged() else None

    def outdated(self) -> list[Path]:
        """Stamps that no start will use: of models that are gone or changed, and damaged ones."""
        stamps = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        found = [(stamp, _read(stamp)) for stamp in stamps]
        return [stamp for stamp, source in found if source is None or not source.is_unchanged()]

    def remember(self, source: Source, weights: str, *, now_ns: int) -> None:
        """Keep a digest for the next start.

        Args:
            source: Digested.
            weights: As for `known`.
            now_ns: The time before the digest was made; younger files are not remembered.

        Raises:
            OSError: The folder is not there, or cannot be written to.
        """
        if not source.files or _youngest(source.files) > now_ns - YOUNG_NS:
            return
        content: dict[str, object] = {
            "format": FORMAT,
            "digest": source.digest,
            "files": [file.to_json() for file in source.files],
        }
        content["check"] = _check(content)
        from ort_lite.model_cache.store import write_record  # noqa: PLC0415 - not where it is known

        stamp = self._stamp(Path(source.files[0].path), weights)
        write_record(stamp, json.dumps(content).encode())

    def _stamp(self, path: Path, weights: str) -> Path:
        name = json.dumps([str(path.absolute()), str(Path(weights).absolute()) if weights else ""])
        return self._folder / f"{blake3(name.encode()).hexdigest()[:32]}.json"


def _read(stamp: Path) -> Source | None:
    """A remembered digest and its files; None where there is none, or a damaged one."""
    try:
        data = stamp.read_bytes() if stamp.stat().st_size <= MAX_BYTES else b""
        content = json.loads(data)
        check = content.pop("check")
        if check != _check(content) or content["format"] != FORMAT:
            return None
        files = tuple(SourceFile(**file) for file in content["files"])
        return Source(str(content["digest"]), files) if files else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # the next digest replaces it


def _youngest(files: Sequence[SourceFile]) -> int:
    return max(max(file.mtime_ns, file.ctime_ns) for file in files)


def _check(content: object) -> str:
    return blake3(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

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

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.mapped_file import FileStamp
from ctx_formats.model_file import digest_pieces

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from ctx_formats.model_file import ModelBytes
    from ort_lite.model.external_file import ExternalFile
    from ort_lite.model.loader import LoadedModel
    from ort_lite.model_cache.secret import CacheSecret

FORMAT = 1
KIND = "source"
"""Purpose of the record in its MAC, if the cache has a key."""
YOUNG_NS = 1_000_000_000
MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """The metadata that distinguish versions of a file without reading it."""

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
        return cls.from_stamp(path, FileStamp.of(Path(path).stat()))

    @classmethod
    def from_stamp(cls, path: str | os.PathLike[str], stamp: FileStamp) -> SourceFile:
        """The file at `path` as it was when it had that stamp."""
        return cls(
            path=str(Path(path).absolute()),
            device=stamp.device,
            inode=stamp.inode,
            size=stamp.size,
            mtime_ns=stamp.mtime_ns,
            ctime_ns=stamp.ctime_ns,
        )

    @property
    def stamp(self) -> FileStamp:
        """The metadata without the path."""
        return FileStamp(self.device, self.inode, self.size, self.mtime_ns, self.ctime_ns)

    def to_json(self) -> dict[str, str | int]:
        """Plain values, by the names of the constructor's arguments."""
        return {name: getattr(self, name) for name in SourceFile.__slots__}


@dataclass(frozen=True, slots=True)
class DigestedSource:
    """A model's digest, and the files that it was made of.

    Attributes:
        digest: BLAKE3 in hex over the model's bytes and each file of external data, with the
            names under which the model knows them.
        files: Empty for a model from memory.
        size: Bytes of the model and its external data.
    """

    digest: str
    files: tuple[SourceFile, ...]
    size: int

    def is_unchanged(self) -> bool:
        """Whether every file is still the one that was digested."""
        try:
            return all(SourceFile.of(file.path) == file for file in self.files)
        except OSError:
            return False


def read_source(loaded: LoadedModel) -> DigestedSource | None:
    """Digest a model; None if a file has changed since it was read."""
    summary = blake3()
    contents: list[tuple[str, ModelBytes | ExternalFile]] = [("", loaded.data)]
    contents += loaded.external.files()
    try:
        for name, content in contents:
            digest = digest_pieces(content.pieces()).digest()
            summary.update(json.dumps([name, len(content)]).encode() + digest)
        files = stamped_files(loaded)
        unchanged = all(SourceFile.of(file.path) == file for file in files)
    except (OSError, FormatError):
        return None
    size = sum(len(content) for _, content in contents)
    return DigestedSource(summary.hexdigest(), files, size) if unchanged else None


def stamped_files(loaded: LoadedModel) -> tuple[SourceFile, ...]:
    """The files that a model was read from, as they were then; none for a model from memory."""
    if loaded.path is None or loaded.stamp is None:
        return ()
    files = [SourceFile.from_stamp(loaded.path, loaded.stamp)]
    files += [SourceFile.from_stamp(file.name, file.stamp) for _, file in loaded.external.files()]
    return tuple(files)


class SourceStamps:
    """Remembered digests, one small file for each path of a model."""

    def __init__(self, folder: Path, secret: CacheSecret | None = None) -> None:
        """`folder` need not exist; with a secret, digests kept without it do not count."""
        self._folder = folder
        self._secret = secret

    def find_digest(self, path: Path, weights: str) -> DigestedSource | None:
        """The digest of the model at `path`, if it was digested and nothing changed since.

        Args:
            path: Of the model file.
            weights: The folder that the session takes external data from, or "".
        """
        source = _read_stamp(self._stamp(path, weights), self._secret)
        if source is None or source.files[0].path != str(path.absolute()):
            return None
        return source if source.is_unchanged() else None

    def list_outdated(self) -> list[Path]:
        """Stamps that no start will use: of models that are gone or changed, and damaged ones."""
        stamps = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        sources = [(stamp, _read_stamp(stamp)) for stamp in stamps]
        return [stamp for stamp, source in sources if source is None or not source.is_unchanged()]

    def remember(self, source: DigestedSource, weights: str, *, now_ns: int) -> None:
        """Keep a digest for the next start.

        Args:
            source: Digested.
            weights: As for `known`.
            now_ns: The time before the digest was made; younger files are not remembered.

        Raises:
            OSError: The folder is not there, or cannot be written to.
        """
        if not source.files or _newest_time(source.files) > now_ns - YOUNG_NS:
            return
        content: dict[str, object] = {
            "format": FORMAT,
            "digest": source.digest,
            "files": [file.to_json() for file in source.files],
        }
        if self._secret is not None:
            content["mac"] = self._secret.mac(KIND, content)
        content["check"] = _check(content)
        from ort_lite.model_cache.store import write_record  # noqa: PLC0415 - lazy: rare

        stamp = self._stamp(Path(source.files[0].path), weights)
        write_record(stamp, json.dumps(content).encode())

    def _stamp(self, path: Path, weights: str) -> Path:
        name = json.dumps([str(path.absolute()), str(Path(weights).absolute()) if weights else ""])
        return self._folder / f"{blake3(name.encode()).hexdigest()[:32]}.json"


def _read_stamp(stamp: Path, secret: CacheSecret | None = None) -> DigestedSource | None:
    """A remembered digest and its files; None if absent, damaged or forged."""
    try:
        data = stamp.read_bytes() if stamp.stat().st_size <= MAX_BYTES else b""
        content = json.loads(data)
        check = content.pop("check")
        if check != _check(content) or content["format"] != FORMAT:
            return None
        if secret is not None and not secret.verify_mac(KIND, content):
            return None
        files = tuple(SourceFile(**file) for file in content["files"])
        size = sum(file.size for file in files)
        return DigestedSource(str(content["digest"]), files, size) if files else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # the next digest replaces it


def _newest_time(files: Sequence[SourceFile]) -> int:
    return max(max(file.mtime_ns, file.ctime_ns) for file in files)


def _check(content: object) -> str:
    return blake3(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

"""Entries of the cache in one file, to seed the cache of another machine."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.atomic_write import publish, written_beside
from ctx_formats.errors import FormatError, Reason
from ort_lite.model_cache.entry import MAX_BYTES, Entry, read_entry
from ort_lite.model_cache.objects import READ_ONLY
from ort_lite.model_cache.verification import object_problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import IO

    from ort_lite.model_cache.store import CacheStore

CHUNK = 1 << 20


def export_entries(store: CacheStore, entries: Sequence[Entry], target: Path) -> None:
    """Write a tar file: of each entry its objects, then the entry.

    Raises:
        FileExistsError: `target` is there.
        OSError: It cannot be written, or an object is gone.
    """
    with (
        written_beside(target) as (file, temporary),
        tarfile.open(fileobj=file, mode="w") as archive,
    ):
        for entry in entries:
            for one in entry.objects:
                archive.add(store.objects / one.name, f"objects/{one.name}")
            path = store.entries_folder / f"{entry.key}.json"
            archive.add(path, f"entries/{entry.key}.json")
    publish(temporary, target, replace=False)


def import_entries(store: CacheStore, source: Path) -> list[Entry]:
    """Take the entries of a file that `export_entries` wrote; each is checked as a whole.

    Raises:
        FormatError: The file is damaged or holds something else; entries before it are taken.
        OSError: The cache cannot be written to.
    """
    store.prepare()
    taken = []
    with source.open("rb") as file:
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                for member in archive:
                    found = _take(store, archive, member)
                    if found is not None:
                        taken.append(found)
        except tarfile.TarError as exc:
            raise FormatError("archive", str(exc), "a tar file", file=str(source)) from exc
    return taken


def _take(store: CacheStore, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry | None:
    """Keep one object; or commit one entry, whose objects came before it."""
    folder, _, name = member.name.partition("/")
    content = archive.extractfile(member) if member.isreg() else None
    if content is None or "/" in name or folder not in ("objects", "entries"):
        raise FormatError("archive", f"'{member.name[:80]}'", "objects and entries only")
    if folder == "objects":
        _keep_object(store, name, content)
        return None
    entry = read_entry(content.read(MAX_BYTES + 1), name.removesuffix(".json"))
    for one in entry.objects:
        problem = object_problem(store, one)
        if problem:
            raise FormatError(f"object {one.name}", problem, reason=Reason.INTEGRITY)
    store.commit(entry)
    return entry


def _keep_object(store: CacheStore, name: str, content: IO[bytes]) -> None:
    """Store the bytes under their name, if it is the kind of name that objects have."""
    stem, dot, suffix = name.partition(".")
    if (
        len(stem) != len(blake3().hexdigest())
        or not stem.isalnum()
        or suffix not in ("onnx", "bin")
    ):
        raise FormatError("archive", f"object '{name[:80]}'", f"<digest>{dot or '.'}onnx or .bin")
    with written_beside(store.objects / "imported") as (file, temporary):
        while chunk := content.read(CHUNK):
            file.write(chunk)
    temporary.chmod(READ_ONLY)
    publish(temporary, store.objects / name, replace=True)

"""Whether the files of the cache are what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.container_reader import read_container
from ctx_formats.errors import FormatError
from ctx_formats.mapped_file import MappedFile
from ort_lite.model_cache.entry import CacheEntry, NewerEntryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ort_lite.model_cache.entry import CacheObject
    from ort_lite.model_cache.store import CacheStore


def problems(store: CacheStore) -> Iterator[tuple[str, str]]:
    """Key and problem of every entry that a session would drop; not those of a newer ort_lite."""
    for entry in store.entries():
        if not isinstance(entry, CacheEntry):
            if isinstance(entry[1], NewerEntryError):
                continue
            yield entry[0], str(entry[1])
            continue
        try:
            store.require_mac(entry)
        except FormatError as exc:
            yield entry.key, str(exc)
            continue
        for one in entry.objects:
            problem = object_problem(store, one)
            if problem:
                yield entry.key, f"{one.name}: {problem}"
                break


def object_problem(store: CacheStore, one: CacheObject) -> str:
    """Read every byte of an object and return its defect; "" if it has none."""
    return file_problem(store.objects / one.name, one)


def file_problem(path: Path, one: CacheObject) -> str:
    """As `object_problem`, for a file that may have another name."""
    stem, _, suffix = one.name.partition(".")
    try:
        with MappedFile(path, follow_symlink=False) as mapped:
            if len(mapped.view) != one.size:
                return f"{len(mapped.view)} bytes, expected {one.size}"
            digest = _content_digest(mapped.view, container=suffix == "bin")
    except FormatError as exc:
        return str(exc)
    return "" if digest == stem else "its digest differs"


def _content_digest(data: memoryview, *, container: bool) -> str:
    """The digest that names an object.

    Raises:
        FormatError: A payload of a container is not what its head says.
    """
    if not container:
        return blake3(data).hexdigest()
    contained = read_container(data)
    for name in contained.entries:
        contained.read_payload(name)
    head = min(entry.offset for entry in contained.entries.values())
    return blake3(data[:head]).hexdigest()

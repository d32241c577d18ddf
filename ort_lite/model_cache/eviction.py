"""Keeps the cache within its quota: what was not used for longest goes first."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.removal import remove_files
from ort_lite.model_cache.entry import NewerEntryError
from ort_lite.model_cache.kept_choice import ChoiceFile
from ort_lite.model_cache.source_digest import SourceStamps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from ort_lite.model_cache.entry import CacheEntry
    from ort_lite.model_cache.store import CacheStore

LEFTOVER_SECONDS = 3600.0
"""An object that no entry names may be one whose entry is about to be written; older, it is not."""


def evict(store: CacheStore, quota: int, *, keep: Collection[str] = ()) -> list[CacheEntry]:
    """Drop entries until the rest takes at most `quota` bytes.

    Args:
        store: The cache.
        quota: Bytes of objects.
        keep: Keys of entries that stay, in addition to those that are pinned.

    Returns:
        What was dropped, least recently used first.

    Raises:
        OSError: The first problem, after every entry that the quota asks for was tried: an
            entry that cannot be removed does not keep the others.
    """
    entries = sorted(store.sound_entries(), key=lambda e: (store.last_used(e.key), e.key))
    kept = {e.key: e for e in entries}
    dropped, problem = [], None
    for entry in entries:
        if distinct_size(list(kept.values())) <= quota:
            break
        if entry.key in keep or store.is_pinned(entry.key):
            continue
        try:
            store.drop(entry.key)
        except OSError as exc:
            problem = problem or exc
            if store.has_entry(entry.key):
                continue
        dropped.append(kept.pop(entry.key))
    if problem is not None:
        raise problem
    return dropped


def distinct_size(entries: list[CacheEntry]) -> int:
    """Bytes of all objects of `entries`, each counted once."""
    return sum({one.name: one.size for entry in entries for one in entry.objects}.values())


def remove_leftovers(store: CacheStore, *, now: float) -> list[Path]:
    """Remove what no start will use.

    Damaged entries, guesses that lead nowhere, choices for models that are gone, digests of models
    that are gone or changed; and temporary files and objects without an entry, where they are old.
    Entries of a newer ort_lite stay, and with them every object.

    Args:
        store: The cache.
        now: In seconds since 1970.

    Returns:
        What was removed.

    Raises:
        OSError: The first problem, after everything else was removed: a damaged entry that stays
            does not keep the others.
    """
    damaged = [
        entry[0]
        for entry in store.entries()
        if isinstance(entry, tuple)
        and isinstance(entry[1], FormatError)
        and not isinstance(entry[1], NewerEntryError)
    ]
    removed: list[Path] = []
    problem = None
    for key in damaged:
        try:
            store.drop(key)
        except OSError as exc:
            problem = problem or exc
        else:
            removed.append(store.entries_folder / key)
    unused = (
        *store.aimless_guesses(),
        *SourceStamps(store.sources).list_outdated(),
        *(
            path
            for path in _files(store.choices)
            if path.name.endswith(".json") and ChoiceFile(path).is_outdated()
        ),
    )
    steps: tuple[Callable[[], list[Path]], ...] = (
        lambda: remove_files(unused),
        lambda: remove_old_files(store, now=now),
    )
    for remove in steps:
        try:
            removed += remove()
        except OSError as exc:
            problem = problem or exc
    if problem is not None:
        raise problem
    return removed


def remove_old_files(store: CacheStore, *, now: float) -> list[Path]:
    """Remove what processes left that were killed: temporary files, and objects without an entry.

    Args:
        store: The cache.
        now: In seconds since 1970.

    Returns:
        What was removed.

    Raises:
        OSError: One cannot be removed; the others are.
    """
    return remove_files(path for path in unnamed_files(store) if _age(path, now) > LEFTOVER_SECONDS)


def unnamed_files(store: CacheStore) -> list[Path]:
    """Temporary files, and objects that no entry names; some may be about to be named.

    With entries of a newer ort_lite, which name objects in a way unknown here, no objects.
    """
    known = not store.holds_newer()
    named = {one.name for entry in store.sound_entries() for one in entry.objects}
    return [
        path
        for folder in store.folders
        for path in _files(folder)
        if path.name.endswith(".tmp")
        or (known and folder == store.objects and path.name not in named)
    ]


def unnamed_size(store: CacheStore) -> int:
    """Bytes of what `unnamed_files` finds."""
    size = 0
    for path in unnamed_files(store):
        with suppress(FileNotFoundError):  # it has its name by now, or is gone
            size += path.stat().st_size
    return size


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0

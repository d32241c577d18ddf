"""Entries that a new one takes the place of, after an update of a driver, SDK or ort_lite itself.

They stay beyond the quota until the new entry's model has run once: if it fails, the update is
rolled back, and they are needed again. docs/adr/0047-fallback-of-contexts.md.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from ort_lite.model_cache.entry import key_of
from ort_lite.model_cache.identity import SOURCE, differences
from ort_lite.model_cache.store_entry import evict_and_warn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ort_lite.model_cache.entry import CacheEntry
    from ort_lite.model_cache.store import CacheStore


def superseded_keys(entries: Sequence[CacheEntry], identity: Mapping[str, str]) -> tuple[str, ...]:
    """Keys of entries of the same model, options and providers for another environment.

    Args:
        entries: Of the cache.
        identity: Of the new entry.
    """
    providers = identity["providers"].split(",")
    return tuple(
        entry.key
        for entry in entries
        if entry.key != key_of(identity)
        and entry.identity.get(SOURCE) == identity[SOURCE]
        and all(
            _is_environment(one.field, providers) for one in differences(entry.identity, identity)
        )
    )


def _is_environment(field: str, providers: Collection[str]) -> bool:
    """Whether a field of an identity names a device, a driver or a version, not an option."""
    if field == "producer":
        return True
    owner, _, rest = field.partition(".")
    return owner in providers and not rest.startswith("option.")


class EvictionAfterRun:
    """The eviction that was put off when an entry was stored; a call is a run that succeeded."""

    def __init__(self, store: CacheStore, quota: int, newest: str) -> None:
        """Evict nothing yet; `newest` is the key of the entry that stays."""
        self._store = store
        self._quota = quota
        self._newest = newest
        self._lock = Lock()
        self._is_done = False

    def __call__(self) -> None:
        """Evict, once."""
        if self._is_done:
            return
        with self._lock:
            is_first, self._is_done = not self._is_done, True
        if is_first:
            evict_and_warn(self._store, self._quota, keep=(self._newest,))

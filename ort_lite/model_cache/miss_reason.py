"""The reason of a cache miss, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.model_cache.identity import SOURCE, differences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.model_cache.entry import CacheEntry

SHOWN = 60
"""Characters of a value in a message."""


def nearest_entry(
    entries: Sequence[CacheEntry], identity: Mapping[str, str], path: str
) -> CacheEntry | None:
    """The entry that was made of the same model, or from the same path, and differs least."""
    kin = [
        entry
        for entry in entries
        if entry.identity.get(SOURCE) == identity[SOURCE] or (path and entry.source == path)
    ]
    return min(
        kin,
        key=lambda entry: (
            entry.identity.get(SOURCE) != identity[SOURCE],
            len(differences(entry.identity, identity)),
            entry.key,
        ),
        default=None,
    )


def miss_reason(entries: Sequence[CacheEntry], identity: Mapping[str, str], path: str) -> str:
    """One line: what is different from the entry that is nearest."""
    near = nearest_entry(entries, identity, path)
    if near is None:
        return "no compiled form of this model is in the cache"
    reasons = [
        f"{d.field} is '{_shorten(d.present)}' and was '{_shorten(d.recorded)}'"
        for d in differences(near.identity, identity)
    ]
    return "; ".join(reasons)


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."

"""Puts what was just compiled into the cache, and the cache back within its quota."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.target import ContextTarget
from ort_lite.context.writer import context_partitions, context_pieces, source_of
from ort_lite.model_cache.entry import Entry
from ort_lite.model_cache.eviction import evict
from ort_lite.model_cache.objects import ObjectWriter
from ort_lite.status import EPFail, Fail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.model_cache.sources import Source
    from ort_lite.model_cache.store import CacheStore
    from ort_lite.opening import Opened, Opening


@dataclass(frozen=True, slots=True)
class Made:
    """What a compiled model was made of: its identity, and the files as they were digested."""

    identity: Mapping[str, str]
    source: Source


def keep(store: CacheStore, quota: int, opened: Opened, opening: Opening, made: Made) -> str:
    """Keep a compiled model: objects first, then the entry that names them.

    Args:
        store: The cache.
        quota: Bytes that it may take.
        opened: The plain model and what it became.
        opening: What it was opened with.
        made: Under which identity it is found again.

    Returns:
        Why it was not kept, or "".
    """
    loaded, prepared, source = opened.loaded, opened.prepared, made.source
    if not context_partitions(prepared):
        return "no execution provider that keeps compiled models took any node"
    try:
        store.prepare()
        writer = ObjectWriter(store.objects)
        target = ContextTarget(model_path=None, payload_base=None, embed=False, place=writer)
        origin = source_of(loaded)
        with context_pieces(prepared, origin, target, opening.provider_options) as pieces:
            model = writer.write_model(pieces)
        if not source.is_unchanged():
            return "the model changed while it was compiled"
        entry = Entry(
            identity=made.identity,
            model=model,
            payloads=tuple(writer.payloads),
            source=source.files[0].path if source.files else "",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        store.commit(entry)
        if entry.size > quota:
            store.drop(entry.key)
            return f"it takes {entry.size} bytes, the quota is {quota}"
        evict(store, quota, keep=entry.key)
    except (OSError, Fail, EPFail) as exc:
        return str(exc)
    return ""

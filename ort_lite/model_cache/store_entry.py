"""Stores a compiled model in the cache, then evicts entries beyond the quota."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.target import ContextTarget
from ort_lite.context.writer import context_partitions, context_pieces, source_of
from ort_lite.model_cache.entry import CacheEntry, key_of
from ort_lite.model_cache.eviction import evict, remove_old_files
from ort_lite.model_cache.objects import ObjectWriter
from ort_lite.session_log import get_logger
from ort_lite.start.load_request import MOST_KEPT_WHOLE, NO_COMPILED_NODES
from ort_lite.status import EPFail, Fail, load_canceled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ort_lite.model_cache.source_digest import DigestedSource
    from ort_lite.model_cache.store import CacheStore
    from ort_lite.start.load_request import LoadRequest
    from ort_lite.start.prepare_model import PreparedModel

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EntryOrigin:
    """Identity and source files of a compiled model, as they were digested."""

    identity: Mapping[str, str]
    source: DigestedSource


def store_compiled(
    store: CacheStore,
    quota: int,
    model: PreparedModel,
    request: LoadRequest,
    origin: EntryOrigin,
    *,
    spared: Collection[str] = (),
) -> str:
    """Store a compiled model: objects first, then the entry that names them.

    Args:
        store: The cache.
        quota: Bytes that it may take.
        model: The compiled model.
        request: The request that it was compiled for.
        origin: The identity under which it is found again, and its files.
        spared: Keys of entries that stay for now, whatever the quota.

    Returns:
        Why it was not stored, in which case nothing is left of it; else "". A model of which no EP
        that keeps compiled forms took a node is stored up to `MOST_KEPT_WHOLE`.

    Raises:
        ModelLoadCanceled: The caller asked to stop; nothing is left of it either.
    """
    if not context_partitions(model.prepared) and origin.source.size > MOST_KEPT_WHOLE:
        return NO_COMPILED_NODES
    writer = ObjectWriter(store)
    try:
        store.prepare()
        entry = _write_entry(writer, model, request, origin)
        problem = _commit(store, quota, entry, origin.source)
    except (Fail, EPFail) as exc:
        problem = exc.message
    except OSError as exc:
        problem = str(exc)
    except BaseException:
        writer.withdraw()
        raise
    if problem:
        writer.withdraw()
    else:
        evict_and_warn(store, quota, keep=(key_of(origin.identity), *spared))
    return problem


def evict_and_warn(store: CacheStore, quota: int, *, keep: Collection[str]) -> None:
    """Evict entries and remove what killed processes left; what cannot be removed is a warning.

    Args:
        store: The cache.
        quota: Bytes that it may take.
        keep: Keys of entries that stay.
    """
    # What is left of killed processes goes whether or not an entry can be removed.
    for remove in (
        lambda: evict(store, quota, keep=keep),
        lambda: remove_old_files(store, now=time.time()),
    ):
        try:
            remove()
        except OSError as exc:
            log.warning("the model cache may stay beyond its quota of %s bytes: %s", quota, exc)


def _write_entry(
    writer: ObjectWriter, model: PreparedModel, request: LoadRequest, origin: EntryOrigin
) -> CacheEntry:
    target = ContextTarget(model_path=None, folder=None, payloads=writer)
    plain, source = source_of(model.loaded), origin.source
    with context_pieces(model.prepared, plain, target, request.provider_options) as pieces:
        if request.is_canceled():
            raise load_canceled()
        written_model = writer.write_model(pieces)
    return CacheEntry(
        identity=origin.identity,
        model=written_model,
        payloads=tuple(writer.payloads),
        source=source.files[0].path if source.files else "",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _commit(store: CacheStore, quota: int, entry: CacheEntry, source: DigestedSource) -> str:
    """Commit the entry; the reason where it must not be, else ""."""
    if not source.is_unchanged():
        return "the model changed while it was compiled"
    if entry.size > quota:
        return f"its size is {entry.size} bytes, the quota is {quota}"
    store.commit(entry)
    return ""

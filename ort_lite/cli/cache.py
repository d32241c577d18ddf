"""`ort-lite cache`: lists the model cache, explains misses, and maintains it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.cache_content import export, import_, keygen, verify
from ort_lite.cli.cache_entries import (
    KEY_SHOWN,
    CacheGroup,
    cache_of,
    chosen_entries,
    folder_option,
    store_of,
)
from ort_lite.cli.device_choice import no_device_error
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import (
    count_text,
    json_option,
    print_json,
    print_line,
    print_note,
    print_table,
    size_text,
)
from ort_lite.cli.path_type import PATH
from ort_lite.cli.session_choice import session_choice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.model_cache.entry import CacheEntry
    from ort_lite.model_cache.store import CacheStore


@click.group(cls=CacheGroup, short_help="Inspect and maintain the model cache.")
def cache() -> None:
    """Inspect and maintain the model cache, which keeps compiled models for later sessions.

    A session uses it if `session.ep_context_cache=1` or ORT_LITE_CACHE_DIR is set.
    """


for command in (verify, export, import_, keygen):
    cache.add_command(command)


@cache.command("ls", short_help="List the cache's entries.")
@folder_option
@json_option
def list_entries(*, folder: Path | None, as_json: bool) -> ExitCode:
    """List entries, most recently used first."""
    from ort_lite.model_cache.entry import CacheEntry

    store = store_of(folder)
    every_entry = list(store.entries())
    damaged = [{"key": e[0], "problem": str(e[1])} for e in every_entry if isinstance(e, tuple)]
    entries = [e for e in every_entry if isinstance(e, CacheEntry)]
    entries.sort(key=lambda e: -store.last_used(e.key))
    if as_json:
        listed = [_json(store, e) for e in entries]
        print_json({"folder": str(store.folder), "entries": listed, "damaged": damaged})
        return ExitCode.OK
    rows = [
        (
            entry.key[:KEY_SHOWN],
            size_text(entry.size),
            _local_time(store.last_used(entry.key)),
            "pinned" if store.is_pinned(entry.key) else "",
            entry.identity.get("providers", "").replace("ExecutionProvider", ""),
            _model_text(entry),
        )
        for entry in entries
    ]
    columns = ("key", "size", "last used", "", "providers", "model")
    print_table(columns, rows, right=("size",))
    if not every_entry:
        print_note(
            f"{store.folder} has no entries; a session adds one if ORT_LITE_CACHE_DIR or "
            "session.ep_context_cache=1 is set."
        )
    if damaged:
        print_note(f"{len(damaged)} more cannot be read; run ort-lite cache verify to see why.")
    return ExitCode.OK


@cache.command("du", short_help="Show the cache's size.")
@folder_option
@json_option
def disk_usage(*, folder: Path | None, as_json: bool) -> ExitCode:
    """Show cache size, quota, and space used by unreferenced files."""
    from ort_lite.model_cache.eviction import distinct_size, unnamed_size

    settings, store = cache_of(folder), store_of(folder)
    entries = store.sound_entries()
    used, loose = distinct_size(entries), unnamed_size(store)
    if as_json:
        usage = {"folder": str(store.folder), "entries": len(entries), "bytes": used}
        print_json({**usage, "quota_bytes": settings.quota, "unnamed_bytes": loose})
        return ExitCode.OK
    print_line(
        f"{store.folder}: {count_text(len(entries), 'entry')}, {size_text(used)} of "
        f"{size_text(settings.quota)}"
        + (f"; {size_text(loose)} unreferenced, removed after one hour" if loose else "")
    )
    return ExitCode.OK


@cache.command(short_help="Remove the least recently used entries.")
@click.option(
    "--max-bytes",
    type=click.IntRange(min=0),
    help="Size to shrink the cache to. Default: the quota.",
)
@folder_option
@json_option
def prune(*, max_bytes: int | None, folder: Path | None, as_json: bool) -> ExitCode:
    """Remove unreferenced files and damaged entries, then the least recently used ones.

    Stops once the cache fits its quota. Pinned entries stay.
    """
    from ort_lite.model_cache.eviction import evict, remove_leftovers

    store = store_of(folder)
    quota = max_bytes if max_bytes is not None else cache_of(folder).quota
    leftovers, problem = [], None
    try:
        leftovers = remove_leftovers(store, now=datetime.now(UTC).timestamp())
    except OSError as exc:
        problem = exc
    dropped = evict(store, quota)
    if problem is not None:
        raise problem
    what = "that no entry uses"
    return _print_removed(store, dropped, len(leftovers), what=what, as_json=as_json)


@cache.command(short_help="Remove all entries.")
@folder_option
@json_option
def clear(*, folder: Path | None, as_json: bool) -> ExitCode:
    """Remove all entries, including pinned ones, and all digests.

    Running sessions are not affected.
    """
    store = store_of(folder)
    entries = store.sound_entries()
    for key in store.entry_keys():
        store.drop(key)
    what = "with digests of models and past lookups"
    return _print_removed(store, entries, store.clear_files(), what=what, as_json=as_json)


@cache.command(short_help="Protect entries from removal.")
@click.argument("which", nargs=-1, required=True)
@click.option("--off", is_flag=True, help="Unpin them.")
@folder_option
@json_option
def pin(which: Sequence[str], *, off: bool, folder: Path | None, as_json: bool) -> ExitCode:
    """Pin entries, so that the quota does not remove them.

    WHICH is a prefix of an entry's key, or the path of its model.
    """
    store = store_of(folder)
    entries = chosen_entries(store, which)
    for entry in entries:
        store.unpin(entry.key) if off else store.pin(entry.key)
    if as_json:
        print_json({"pinned": not off, "keys": [entry.key for entry in entries]})
    else:
        print_line(f"{count_text(len(entries), 'entry')} {'unpinned' if off else 'pinned'}")
    return ExitCode.OK


@cache.command(short_help="Explain why a session hits or misses the cache.")
@click.argument("model", type=PATH)
@folder_option
@session_choice
@json_option
def explain(model: Path, *, folder: Path | None, choice: SessionChoice, as_json: bool) -> ExitCode:
    """Tell whether a session with these options would reload MODEL from the cache.

    On a miss, show what differs.

    Exit code 0 for a hit, 1 for a miss.
    """
    from ort_lite.model_cache.lookup import look_up
    from ort_lite.status import EPFail

    options = choice.session_options()
    try:
        lookup = look_up(model, options, choice.providers, cache_of(folder, choice.config))
    except EPFail as exc:
        raise no_device_error(exc) from exc
    code = ExitCode.OK if lookup.hit else ExitCode.DIFFERENT
    if as_json:
        print_json({"model": str(model), **lookup.to_json(), "exit_code": int(code)})
        return code
    print_line(f"{'hit' if lookup.hit else 'miss'}: {lookup.reason or lookup.key}")
    if lookup.identity:
        print_line(f"for: {_devices_text(lookup.identity)}")
    if lookup.differences:
        rows = [(d.field, d.recorded or "-", d.present or "-") for d in lookup.differences]
        print_table(("field", "in the cache", "now"), rows)
    return code


def _devices_text(identity: Mapping[str, str]) -> str:
    """Each execution provider of a cache identity with its device."""
    places = []
    for ep in filter(None, identity.get("providers", "").split(",")):
        device = identity.get(f"{ep}.device", "")
        places.append(f"{ep} on {device}" if device else ep)
    return ", ".join(places)


def _print_removed(
    store: CacheStore, entries: Sequence[CacheEntry], files: int, *, what: str, as_json: bool
) -> ExitCode:
    """Report removed entries, and removed `files` that do not belong to them and hold `what`."""
    size = sum(entry.size for entry in entries)
    if as_json:
        keys = [entry.key for entry in entries]
        print_json({"removed": keys, "bytes": size, "other_files": files})
    else:
        others = f", and {count_text(files, 'file')} {what}" if files else ""
        print_line(
            f"{store.folder}: removed {count_text(len(entries), 'entry')} "
            f"({size_text(size)}){others}"
        )
    return ExitCode.OK


def _model_text(entry: CacheEntry) -> str:
    """The model of an entry, and the input shapes that it is for where those are not all."""
    from ort_lite.model_cache.identity import INPUTS

    inputs = entry.identity.get(INPUTS)
    source = entry.source or "from memory"
    return f"{source} for {inputs}" if inputs else source


def _json(store: CacheStore, entry: CacheEntry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "model": entry.source,
        "bytes": entry.size,
        "created": entry.created,
        "last_used": _time_text(store.last_used(entry.key)),
        "pinned": store.is_pinned(entry.key),
        "identity": dict(entry.identity),
        "objects": [one.name for one in entry.objects],
    }


def _local_time(seconds: float) -> str:
    """For a person, to the minute."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

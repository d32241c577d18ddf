"""`ort-lite cache`: what the model cache holds, why a start found nothing in it, and upkeep."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
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
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import (
    counted,
    json_option,
    print_json,
    print_line,
    print_note,
    print_table,
    size_text,
)
from ort_lite.cli.session_choice import session_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.model_cache.entry import Entry
    from ort_lite.model_cache.store import CacheStore


@click.group(cls=CacheGroup, short_help="Look at the model cache and keep it in order.")
def cache() -> None:
    """The model cache: plain models compiled once and reloaded after that.

    A session uses it with `session.ep_context_cache=1` or where ORT_LITE_CACHE_DIR is set.
    """


for command in (verify, export, import_, keygen):
    cache.add_command(command)


@cache.command("ls", short_help="List what is in it.")
@folder_option
@json_option
def list_entries(*, folder: Path | None, as_json: bool) -> ExitCode:
    """List entries, the most recently used first."""
    from ort_lite.model_cache.entry import Entry

    store = store_of(folder)
    found = list(store.entries())
    damaged = [{"key": e[0], "problem": str(e[1])} for e in found if isinstance(e, tuple)]
    entries = [e for e in found if isinstance(e, Entry)]
    entries.sort(key=lambda e: -store.last_used(e.key))
    if as_json:
        listed = [_json(store, e) for e in entries]
        print_json({"folder": str(store.folder), "entries": listed, "damaged": damaged})
        return ExitCode.OK
    rows = [
        (
            entry.key[:KEY_SHOWN],
            size_text(entry.size),
            _time_text(store.last_used(entry.key)),
            "pinned" if store.is_pinned(entry.key) else "",
            entry.identity.get("providers", ""),
            entry.source or "from memory",
        )
        for entry in entries
    ]
    columns = ("key", "size", "last used", "", "providers", "model")
    print_table(columns, rows, right=("size",))
    if damaged:
        print_note(f"{len(damaged)} more cannot be read; ort-lite cache verify says why.")
    return ExitCode.OK


@cache.command("du", short_help="Say how much it takes.")
@folder_option
@json_option
def disk_usage(*, folder: Path | None, as_json: bool) -> ExitCode:
    """Say how many bytes entries take, of how many they may, and what is of no entry."""
    from ort_lite.model_cache.eviction import distinct_size, unnamed_size

    settings, store = cache_of(folder), store_of(folder)
    entries = store.sound_entries()
    used, loose = distinct_size(entries), unnamed_size(store)
    if as_json:
        found = {"folder": str(store.folder), "entries": len(entries), "bytes": used}
        print_json({**found, "quota_bytes": settings.quota, "unnamed_bytes": loose})
        return ExitCode.OK
    print_line(
        f"{store.folder}: {counted(len(entries), 'entry')}, {size_text(used)} of "
        f"{size_text(settings.quota)}"
        + (f"; {size_text(loose)} of no entry, which go after an hour" if loose else "")
    )
    return ExitCode.OK


@cache.command(short_help="Remove what was not used for longest.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Default: the quota.")
@folder_option
@json_option
def prune(*, max_bytes: int | None, folder: Path | None, as_json: bool) -> ExitCode:
    """Remove leftovers and damaged entries, then entries until the rest fits. Pinned ones stay."""
    from ort_lite.model_cache.eviction import evict, remove_leftovers

    store = store_of(folder)
    quota = max_bytes if max_bytes is not None else cache_of(folder).quota
    leftovers = remove_leftovers(store, now=datetime.now(UTC).timestamp())
    dropped = evict(store, quota)
    return _told_removed(dropped, len(leftovers), as_json=as_json)


@cache.command(short_help="Remove everything.")
@folder_option
@json_option
def clear(*, folder: Path | None, as_json: bool) -> ExitCode:
    """Remove every entry, pinned ones too, and all digests. Sessions that run are not touched."""
    store = store_of(folder)
    entries = store.sound_entries()
    for key in store.entry_keys():
        store.drop(key)
    return _told_removed(entries, store.clear_files(), as_json=as_json)


@cache.command(short_help="Keep entries whatever the quota says.")
@click.argument("which", nargs=-1, required=True)
@click.option("--off", is_flag=True, help="Leave them to the quota again.")
@folder_option
@json_option
def pin(which: Sequence[str], *, off: bool, folder: Path | None, as_json: bool) -> ExitCode:
    """Pin entries: WHICH is the beginning of a key, or the path of a model."""
    store = store_of(folder)
    entries = chosen_entries(store, which)
    for entry in entries:
        store.unpin(entry.key) if off else store.pin(entry.key)
    if as_json:
        print_json({"pinned": not off, "keys": [entry.key for entry in entries]})
    else:
        print_line(f"{counted(len(entries), 'entry')} {'not pinned any more' if off else 'pinned'}")
    return ExitCode.OK


@cache.command(short_help="Say why a start finds MODEL or not.")
@click.argument("model", type=click.Path(path_type=Path))
@folder_option
@session_choice
@json_option
def explain(model: Path, *, folder: Path | None, choice: SessionChoice, as_json: bool) -> ExitCode:
    """Say whether a session with these options would reload MODEL, and if not, what differs.

    Exit code 0 for a hit, 1 for a miss.
    """
    from ort_lite.model_cache.lookup import look_up

    options = choice.session_options()
    found = look_up(model, options, choice.providers, cache_of(folder, choice.config))
    code = ExitCode.OK if found.hit else ExitCode.DIFFERENT
    if as_json:
        print_json({"model": str(model), **found.to_json(), "exit_code": int(code)})
        return code
    print_line(f"{'hit' if found.hit else 'miss'}: {found.reason or found.key}")
    if found.differences:
        rows = [(d.field, d.recorded or "-", d.present or "-") for d in found.differences]
        print_table(("field", "in the cache", "now"), rows)
    return code


def _told_removed(entries: Sequence[Entry], files: int, *, as_json: bool) -> ExitCode:
    size = sum(entry.size for entry in entries)
    if as_json:
        keys = [entry.key for entry in entries]
        print_json({"removed": keys, "bytes": size, "other_files": files})
    else:
        removed = f"{counted(len(entries), 'entry')} removed, {size_text(size)}"
        print_line(f"{removed}; {counted(files, 'other file')}")
    return ExitCode.OK


def _json(store: CacheStore, entry: Entry) -> dict[str, Any]:
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


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

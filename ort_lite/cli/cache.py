"""`ort-lite cache`: what the model cache holds, why a start found nothing in it, and upkeep."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import json_option, print_json, print_line, print_table, size_text
from ort_lite.cli.session_choice import session_choice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.model_cache.entry import Entry
    from ort_lite.model_cache.settings import CacheSettings
    from ort_lite.model_cache.store import CacheStore

KEY_SHOWN = 12

folder_option = click.option(
    "--dir", "folder", type=click.Path(path_type=Path),
    help="The cache's folder. Default: ORT_LITE_CACHE_DIR, or ort_lite in the user's caches.",
)  # fmt: skip


@click.group(short_help="Look at the model cache and keep it in order.")
def cache() -> None:
    """The model cache: plain models compiled once and reloaded after that.

    A session uses it with `session.ep_context_cache=1` or where ORT_LITE_CACHE_DIR is set.
    """


@cache.command("ls", short_help="List what is in it.")
@folder_option
@json_option
def list_entries(*, folder: Path | None, as_json: bool) -> ExitCode:
    """List entries, the most recently used first."""
    store = _store(folder)
    entries = sorted(store.sound_entries(), key=lambda e: -store.last_used(e.key))
    if as_json:
        print_json({"folder": str(store.folder), "entries": [_json(store, e) for e in entries]})
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
    return ExitCode.OK


@cache.command("du", short_help="Say how much it takes.")
@folder_option
@json_option
def disk_usage(*, folder: Path | None, as_json: bool) -> ExitCode:
    """Say how many bytes the cache takes, and of how many it may."""
    from ort_lite.model_cache.eviction import distinct_size

    settings = _settings(folder)
    store = _store(folder)
    entries = store.sound_entries()
    used = distinct_size(entries)
    if as_json:
        found = {"folder": str(store.folder), "entries": len(entries), "bytes": used}
        print_json({**found, "quota_bytes": settings.quota})
        return ExitCode.OK
    print_line(
        f"{store.folder}: {len(entries)} entries, {size_text(used)} of {size_text(settings.quota)}"
    )
    return ExitCode.OK


@cache.command(short_help="Remove what was not used for longest.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Default: the quota.")
@folder_option
@json_option
def prune(*, max_bytes: int | None, folder: Path | None, as_json: bool) -> ExitCode:
    """Remove leftovers and damaged entries, then entries until the rest fits. Pinned ones stay."""
    from ort_lite.model_cache.eviction import evict, remove_leftovers

    store = _store(folder)
    quota = max_bytes if max_bytes is not None else _settings(folder).quota
    with _writing(store):
        leftovers = remove_leftovers(store, now=datetime.now(UTC).timestamp())
        dropped = evict(store, quota)
    return _told_removed(dropped, len(leftovers), as_json=as_json)


@cache.command(short_help="Remove everything.")
@folder_option
@json_option
def clear(*, folder: Path | None, as_json: bool) -> ExitCode:
    """Remove every entry, pinned ones too, and all digests. Sessions that run are not touched."""
    store = _store(folder)
    entries = store.sound_entries()
    with _writing(store):
        for key in store.entry_keys():
            store.drop(key)
        rest = store.clear_files()
    return _told_removed(entries, rest, as_json=as_json)


@cache.command(short_help="Read every byte and compare digests.")
@click.option("--fix", is_flag=True, help="Remove what is damaged; it is compiled again.")
@folder_option
@json_option
def verify(*, fix: bool, folder: Path | None, as_json: bool) -> ExitCode:
    """Check every file. A session does this for what it loads; exit code 1 if something is bad."""
    from ort_lite.model_cache.verification import problems

    store = _store(folder)
    found = list(problems(store))
    if fix:
        with _writing(store):
            for key, _ in found:
                store.drop(key)
    if as_json:
        print_json(
            {
                "folder": str(store.folder),
                "entries": len(store.entry_keys()),
                "damaged": [{"key": key, "problem": problem} for key, problem in found],
                "removed": fix,
            }
        )
    else:
        for key, problem in found:
            print_line(f"{key[:KEY_SHOWN]}: {problem}{' (removed)' if fix else ''}")
        print_line(f"{len(found)} damaged" if found else "every byte is what was written")
    return ExitCode.DIFFERENT if found and not fix else ExitCode.OK


@cache.command(short_help="Keep entries whatever the quota says.")
@click.argument("which", nargs=-1, required=True)
@click.option("--off", is_flag=True, help="Leave them to the quota again.")
@folder_option
@json_option
def pin(which: Sequence[str], *, off: bool, folder: Path | None, as_json: bool) -> ExitCode:
    """Pin entries: WHICH is the beginning of a key, or the path of a model."""
    store = _store(folder)
    entries = _chosen(store, which)
    with _writing(store):
        for entry in entries:
            store.unpin(entry.key) if off else store.pin(entry.key)
    if as_json:
        print_json({"pinned": not off, "keys": [entry.key for entry in entries]})
    else:
        print_line(f"{len(entries)} entries {'not pinned any more' if off else 'pinned'}")
    return ExitCode.OK


@cache.command("export", short_help="Write entries into a file.")
@click.argument("target", type=click.Path(path_type=Path))
@click.argument("which", nargs=-1)
@folder_option
@json_option
def export(target: Path, which: Sequence[str], *, folder: Path | None, as_json: bool) -> ExitCode:
    """Write entries into TARGET, a tar file: those that WHICH names (key or model), or all.

    A machine with the same SDK, device and driver imports them and compiles nothing.
    """
    from ort_lite.model_cache.transfer import export_entries

    store = _store(folder)
    entries = _chosen(store, which) if which else store.sound_entries()
    if not entries:
        raise CommandError(ExitCode.USAGE, f"there is no entry in {store.folder}")
    with _writing(store):
        export_entries(store, entries, target)
    return _told_moved("exported", entries, as_json=as_json)


@cache.command("import", short_help="Take entries from a file.")
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@folder_option
@json_option
def import_(source: Path, *, folder: Path | None, as_json: bool) -> ExitCode:
    """Take the entries of SOURCE. Each is checked; but compiled code is code: mind who made it."""
    from ctx_formats.errors import FormatError
    from ort_lite.model_cache.transfer import import_entries

    store = _store(folder)
    with _writing(store):
        try:
            entries = import_entries(store, source)
        except FormatError as exc:
            raise CommandError(ExitCode.INVALID_GRAPH, f"{source}: {exc}") from exc
    return _told_moved("imported", entries, as_json=as_json)


@cache.command(short_help="Say why a start finds MODEL or not.")
@click.argument("model", type=click.Path(path_type=Path))
@folder_option
@session_choice
@json_option
def explain(model: Path, *, folder: Path | None, choice: SessionChoice, as_json: bool) -> ExitCode:
    """Say whether a session with these options would reload MODEL, and if not, what differs."""
    from ort_lite.model_cache.inquiry import inquire

    found = inquire(model, choice.session_options(), choice.providers, _settings(folder))
    if as_json:
        print_json({"model": str(model), **found.to_json()})
        return ExitCode.OK
    print_line(f"{'hit' if found.hit else 'miss'}: {found.reason or found.key}")
    if found.differences:
        rows = [(d.field, d.recorded or "-", d.present or "-") for d in found.differences]
        print_table(("field", "in the cache", "now"), rows)
    return ExitCode.OK


def _settings(folder: Path | None) -> CacheSettings:
    from ort_lite.model_cache.settings import FOLDER_KEY, cache_settings

    return cache_settings({FOLDER_KEY: str(folder)} if folder is not None else {}, os.environ)


def _store(folder: Path | None) -> CacheStore:
    from ort_lite.model_cache.store import CacheStore

    return CacheStore(_settings(folder).folder)


@contextmanager
def _writing(store: CacheStore) -> Iterator[None]:
    """A body that changes the cache; what the file system refuses ends the command."""
    try:
        yield
    except OSError as exc:
        raise CommandError(ExitCode.COMPILE_FAILED, f"{store.folder}: {exc}") from exc


def _chosen(store: CacheStore, which: Sequence[str]) -> list[Entry]:
    entries = store.sound_entries()
    found: dict[str, Entry] = {}
    for text in which:
        path = str(Path(text).absolute())
        named = {e.key: e for e in entries if e.key.startswith(text) or e.source == path}
        if not named:
            raise CommandError(
                ExitCode.USAGE,
                f"{text} is no entry's key and no cached model's path",
                hint="ort-lite cache ls lists them",
            )
        found |= named
    return list(found.values())


def _told_removed(entries: Sequence[Entry], files: int, *, as_json: bool) -> ExitCode:
    size = sum(entry.size for entry in entries)
    if as_json:
        keys = [entry.key for entry in entries]
        print_json({"removed": keys, "bytes": size, "other_files": files})
    else:
        print_line(f"{len(entries)} entries removed, {size_text(size)}; {files} other files")
    return ExitCode.OK


def _told_moved(verb: str, entries: Sequence[Entry], *, as_json: bool) -> ExitCode:
    if as_json:
        print_json({verb: [entry.key for entry in entries]})
    else:
        size = size_text(sum(entry.size for entry in entries))
        print_line(f"{len(entries)} entries {verb}, {size}")
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

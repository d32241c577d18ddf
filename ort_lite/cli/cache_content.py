"""`ort-lite cache verify`, `export` and `import`: commands that read entries in full."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.cache_entries import (
    KEY_SHOWN,
    cache_of,
    chosen_entries,
    folder_option,
    secret_option,
    store_of,
)
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.next_steps import look_at
from ort_lite.cli.output import (
    count_text,
    json_option,
    print_json,
    print_line,
    print_note,
    size_text,
)
from ort_lite.cli.path_type import PATH, NamedPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.model_cache.entry import CacheEntry

REMEDY = "ort-lite cache verify --fix removes damaged entries, which are then compiled again"


@click.command(short_help="Verify the digests of all entries.")
@click.option("--fix", is_flag=True, help="Remove damaged entries; they will be compiled again.")
@folder_option
@secret_option
@json_option
def verify(*, fix: bool, folder: Path | None, secret: Path | None, as_json: bool) -> ExitCode:
    """Verify every entry and its files, as sessions do for those they load.

    Exit code 1 if an entry is damaged.
    """
    from ort_lite.model_cache.verification import problems

    store = store_of(folder, secret)
    damage = list(problems(store))
    if fix:
        for key, _ in damage:
            store.drop(key)
    if as_json:
        print_json(
            {
                "folder": str(store.folder),
                "entries": len(store.entry_keys()),
                "damaged": [{"key": key, "problem": problem} for key, problem in damage],
                "removed": fix,
                "hint": REMEDY if damage and not fix else "",
            }
        )
    else:
        for key, problem in damage:
            print_line(f"{key[:KEY_SHOWN]}: {problem}{' (removed)' if fix else ''}")
        whole = "all entries are intact" if store.entry_keys() else "no entries"
        print_line(f"{len(damage)} damaged" if damage else whole)
        if damage and not fix:
            print_note(f"Hint: {REMEDY}.")
    return ExitCode.DIFFERENT if damage and not fix else ExitCode.OK


@click.command("export", short_help="Export entries to a file.")
@click.argument("target", type=PATH)
@click.argument("which", nargs=-1)
@folder_option
@json_option
def export(target: Path, which: Sequence[str], *, folder: Path | None, as_json: bool) -> ExitCode:
    """Export entries to TARGET, a tar file: those named by WHICH (key or model), or all.

    A machine with the same SDK, device and driver can import them instead of compiling.
    """
    from ctx_formats.errors import FormatError
    from ort_lite.model_cache.transfer import export_entries

    store = store_of(folder)
    entries = chosen_entries(store, which) if which else store.sound_entries()
    if not entries:
        raise CommandError(
            ExitCode.USAGE,
            f"{store.folder} has no entries",
            hint="a session adds one if ORT_LITE_CACHE_DIR or session.ep_context_cache=1 is set",
        )
    try:
        export_entries(store, entries, target)
    except FormatError as exc:
        raise CommandError(ExitCode.INVALID_GRAPH, str(exc), hint=REMEDY) from exc
    return _print_entries("exported", entries, as_json=as_json)


@click.command("import", short_help="Import entries from a file.")
@click.argument("source", type=NamedPath(path_type=Path, exists=True, dir_okay=False))
@folder_option
@secret_option
@json_option
def import_(source: Path, *, folder: Path | None, secret: Path | None, as_json: bool) -> ExitCode:
    """Import the entries of SOURCE, a file written by `ort-lite cache export`.

    Every entry is verified, but compiled models are executable code: import only from sources
    you trust. A file larger than the quota is refused; least recently used entries make room.
    """
    from ctx_formats.errors import FormatError
    from ort_lite.model_cache.transfer import import_entries

    try:
        entries = import_entries(store_of(folder, secret), source, cache_of(folder).quota)
    except FormatError as exc:
        kind = look_at(source).partition(";")[0]
        if kind:
            raise CommandError(
                ExitCode.INVALID_GRAPH,
                f"{source} is {kind}, not an archive of compiled models",
                hint="ort-lite cache export writes such an archive",
            ) from exc
        raise CommandError(
            ExitCode.INVALID_GRAPH,
            str(exc.in_file(str(source))),
            hint="export the archive again with ort-lite cache export",
        ) from exc
    return _print_entries("imported", entries, as_json=as_json)


@click.command(short_help="Create a key for a cache.")
@click.argument("file", type=PATH)
@click.option("--force", is_flag=True, help="Replace an existing file, whose key is lost.")
@json_option
def keygen(file: Path, *, force: bool, as_json: bool) -> ExitCode:
    """Write a new secret to FILE, for session.ep_context_cache_key.

    Only the file's owner can read it.
    """
    from secrets import token_hex

    from ort_lite.model_cache.secret import SECRET_BYTES, read_secret
    from ort_lite.trust.private_keys import write_secret

    try:
        write_secret(file, f"{token_hex(SECRET_BYTES)}\n".encode(), replace=force)
    except FileExistsError as exc:
        raise CommandError(
            ExitCode.USAGE, f"{file} exists already", hint="name another file, or use --force"
        ) from exc
    name = read_secret(str(file)).name
    if as_json:
        print_json({"file": str(file), "key": name})
    else:
        print_line(f"{file}: key {name}")
    return ExitCode.OK


def _print_entries(verb: str, entries: Sequence[CacheEntry], *, as_json: bool) -> ExitCode:
    if as_json:
        print_json({verb: [entry.key for entry in entries]})
    else:
        size = size_text(sum(entry.size for entry in entries))
        print_line(f"{count_text(len(entries), 'entry')} {verb}, {size}")
    return ExitCode.OK

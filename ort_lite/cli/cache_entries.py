"""Shared by the commands of `ort-lite cache`: the folder, entries by name, errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.path_type import PATH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.model_cache.entry import CacheEntry
    from ort_lite.model_cache.settings import CacheSettings
    from ort_lite.model_cache.store import CacheStore

KEY_SHOWN = 12

folder_option = click.option(
    "--dir", "folder", type=PATH,
    help="Folder of the cache. Default: ORT_LITE_CACHE_DIR, or ort_lite in the user's caches.",
)  # fmt: skip

secret_option = click.option(
    "--key", "secret", type=PATH,
    help="File with the cache's key; entries made without it count as damaged.",
)  # fmt: skip


class CacheGroup(click.Group):
    """Commands on files, in a folder that may be missing, unreadable, full or damaged."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's
        """Run the command; what the file system or a file's content refuses ends it."""
        from ctx_formats.errors import FormatError

        try:
            return super().invoke(ctx)
        except OSError as exc:
            raise CommandError(ExitCode.COMPILE_FAILED, f"the model cache: {exc}") from exc
        except FormatError as exc:
            raise CommandError(ExitCode.INVALID_GRAPH, str(exc)) from exc


def cache_of(folder: Path | None, config: Mapping[str, str] | None = None) -> CacheSettings:
    """The cache that is meant: `--dir`, else what a session of these entries would use."""
    from ort_lite.context.keys import FOLDER_KEY
    from ort_lite.model_cache.settings import cache_settings

    chosen = {FOLDER_KEY: str(folder)} if folder is not None else {}
    return cache_settings({**(config or {}), **chosen}, os.environ)


def store_of(folder: Path | None, secret: Path | None = None) -> CacheStore:
    """Its files.

    Args:
        folder: Of the cache, where one is named.
        secret: A file with the key that entries have to be made with; None for none.

    Raises:
        CommandError: Something else than a folder is there.
        InvalidArgument: The key cannot be read.
    """
    from ort_lite.context.keys import CACHE_SECRET_KEY
    from ort_lite.model_cache.store import CacheStore

    settings = cache_of(folder, {CACHE_SECRET_KEY: str(secret)} if secret is not None else {})
    store = CacheStore(settings.folder, settings.secret)
    path = Path(store.folder)
    if path.exists() and not path.is_dir():
        hint = "--dir names the folder of a cache"
        raise CommandError(ExitCode.USAGE, f"{path} is not a folder", hint=hint)
    return store


def chosen_entries(store: CacheStore, which: Sequence[str]) -> list[CacheEntry]:
    """The entries that are named by the beginning of a key, or the path of a model.

    Raises:
        CommandError: One of `which` names none.
    """
    entries = store.sound_entries()
    by_key: dict[str, CacheEntry] = {}
    for text in which:
        path = str(Path(text).absolute())
        named = {e.key: e for e in entries if (text and e.key.startswith(text)) or e.source == path}
        if not named:
            raise CommandError(
                ExitCode.USAGE,
                f"'{text}' matches neither an entry's key nor a cached model's path",
                hint="run ort-lite cache ls to list them",
            )
        by_key |= named
    return list(by_key.values())

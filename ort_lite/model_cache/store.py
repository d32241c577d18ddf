"""The cache's folder: immutable objects, named by content, and the entries that name them.

    <folder>/v1/objects/<digest>.onnx     a context model
                        <digest>.bin      the payloads of one EP, in a container
                entries/<key>.json        written last: an entry is there, or it is not
                pins/<key>                an empty file: this entry is not evicted
                sources/<name>.json       digests of plain models, by stat
                choices/<name>.json       execution providers that a model needs, by request
                guesses/<name>            the key that a request led to last; never trusted
                locks/<xx>.lock           by the first byte of a key; never deleted

A published file is never written into. A process that has a removed file open keeps its bytes;
Windows does not remove a file that is mapped.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.removal import remove_file, remove_files
from ort_lite.context.keys import CACHE_SECRET_KEY
from ort_lite.model_cache.entry import MAX_BYTES, CacheEntry, read_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ort_lite.model_cache.entry import CacheObject
    from ort_lite.model_cache.secret import CacheSecret

LAYOUT = "v1"
FOLDER_MODE = 0o775
"""Whatever the umask, not everybody can write to a folder that we make: see `exposed`."""
SUFFIX = ".json"
_KEY = re.compile(r"[0-9a-f]{64}")


class CacheStore:
    """Entries and objects in one folder, which need not exist.

    Methods raise OSError where the file system does; nothing else depends on what they find.
    """

    def __init__(self, folder: Path, secret: CacheSecret | None = None) -> None:
        """Nothing is read yet.

        Args:
            folder: Of the cache.
            secret: What its entries are made with, and have to be; None for a cache without.
        """
        self.folder = folder
        self.secret = secret
        self.root = root = folder / LAYOUT
        self.objects = root / "objects"
        self.entries_folder = root / "entries"
        self.pins = root / "pins"
        self.sources = root / "sources"
        self.choices = root / "choices"
        self.guesses = root / "guesses"
        self.locks = root / "locks"

    def prepare(self) -> None:
        """Make the folders before anything is written; a new cache is this user's alone.

        Raises:
            OSError: A folder cannot be made.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.root, *self.folders, self.locks):
                folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        except FileNotFoundError as exc:
            from ctx_formats import long_path  # noqa: PLC0415 - lazy: rare

            refused = str(exc.filename)
            sentence = long_path.explain_length(refused, long_path.LONGEST_FOLDER)
            raise FileNotFoundError(exc.errno, sentence or exc.strerror, refused) from exc

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of its files except locks; entries precede the objects that they name."""
        return (
            *(self.entries_folder, self.objects, self.pins, self.sources),
            *(self.choices, self.guesses),
        )

    def exposure(self) -> str:
        """Why files in the folder cannot be trusted; "" if they can, or it is not there.

        A payload is code: where everybody can write, anybody could put some, or say that it is
        this model's.
        """
        named = (self.entries_folder, self.objects, self.sources, self.choices)
        for folder in (self.folder, self.root, *named):
            try:
                mode = folder.stat().st_mode
            except OSError:
                continue
            if os.name == "posix" and mode & stat.S_IWOTH:
                return f"everybody can write to {folder} (chmod o-w {folder})"
        return ""

    def entry(self, key: str) -> CacheEntry | None:
        """The entry of that key; None if absent.

        Raises:
            FormatError: It is damaged.
        """
        path = self._entry_path(key)
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        return read_entry(data, key)

    def entries(self) -> Iterator[CacheEntry | tuple[str, FormatError | OSError]]:
        """Every entry in the order of keys; for one that cannot be read its key and the problem.

        An OSError may come from another user's entry in a shared cache.
        """
        for key in self.entry_keys():
            try:
                entry = self.entry(key)
            except (FormatError, OSError) as exc:
                yield key, exc
                continue
            if entry is not None:
                yield entry

    def sound_entries(self) -> list[CacheEntry]:
        """Every entry that can be read and is not damaged."""
        return [entry for entry in self.entries() if isinstance(entry, CacheEntry)]

    def holds_newer(self) -> bool:
        """Whether a newer ort_lite keeps entries here, whose objects this one cannot know."""
        from ort_lite.model_cache.entry import NewerEntryError  # noqa: PLC0415 - lazy: rare

        return any(
            isinstance(entry, tuple) and isinstance(entry[1], NewerEntryError)
            for entry in self.entries()
        )

    def entry_keys(self) -> list[str]:
        """Names of all entries."""
        try:
            names = sorted(path.name for path in self.entries_folder.iterdir())
        except FileNotFoundError:
            return []
        return [
            name.removesuffix(SUFFIX)
            for name in names
            if name.endswith(SUFFIX) and not name.startswith(".")
        ]

    def commit(self, entry: CacheEntry) -> None:
        """Publish an entry whose objects are there; an older one of its key gives way."""
        if self.secret is not None:
            entry = entry.seal(self.secret)
        write_record(self._entry_path(entry.key), entry.to_bytes())

    def require_mac(self, entry: CacheEntry) -> None:
        """Refuse an entry that was not made with the cache's key.

        Raises:
            FormatError: Reason untrusted.
        """
        if self.secret is not None and not entry.has_mac_of(self.secret):
            raise FormatError(
                f"cache entry {entry.key[:12]}.mac",
                "the MAC of another key" if entry.mac else "none",
                f"one of the key {self.secret.name} ({CACHE_SECRET_KEY})",
                reason=Reason.UNTRUSTED,
            )

    def guess(self, request: str) -> str:
        """The key of the entry that `request` led to last; "" if absent.

        Which entry is right is known once the execution providers are open. Until then this
        one can be read ahead of need.
        """
        try:
            with (self.guesses / request).open("rb") as file:
                key = file.read(len(request) + 1).decode("ascii", "replace")
        except OSError:
            return ""
        return key if _KEY.fullmatch(key) else ""

    def aimless_guesses(self) -> list[Path]:
        """Guesses at entries that are not there, or at nothing."""
        keys = set(self.entry_keys())
        names = sorted(self.guesses.iterdir()) if self.guesses.is_dir() else []
        return [path for path in names if self.guess(path.name) not in keys]

    def remember_guess(self, request: str, key: str) -> None:
        """Note the entry that `request` led to; a cache that is read-only forgets it."""
        with suppress(OSError):
            self.prepare()
            write_record(self.guesses / request, key.encode())

    def drop(self, key: str) -> None:
        """Remove an entry and the objects that no other entry names.

        Its pin stays, for when the same is compiled again.
        """
        try:
            doomed = self.entry(key)
        except FormatError:
            doomed = None
        remove_file(self._entry_path(key))
        if doomed is not None:
            self.discard(doomed.objects)

    def discard(self, objects: Iterable[CacheObject]) -> None:
        """Remove those of `objects` that no entry names; none if a newer ort_lite has entries here.

        Raises:
            OSError: One cannot be removed; the others are.
        """
        if self.holds_newer():
            return
        kept = {item.name for entry in self.sound_entries() for item in entry.objects}
        remove_files(self.objects / item.name for item in objects if item.name not in kept)

    def clear_files(self) -> int:
        """Remove all files but locks; how many there were.

        Raises:
            OSError: One cannot be removed; the others are.
        """
        folders = [folder for folder in self.folders if folder.is_dir()]
        return len(remove_files(path for folder in folders for path in sorted(folder.iterdir())))

    def has_entry(self, key: str) -> bool:
        """Whether an entry is there, damaged or not."""
        return self._entry_path(key).exists()

    def note_use(self, key: str) -> None:
        """Note that an entry was used now; a cache that is read-only forgets it."""
        with suppress(OSError):
            os.utime(self._entry_path(key))

    def last_used(self, key: str) -> float:
        """When an entry was last used, in seconds since 1970; 0 if it is gone."""
        try:
            return self._entry_path(key).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def is_pinned(self, key: str) -> bool:
        """Whether eviction leaves an entry alone."""
        return (self.pins / key).exists()

    def pin(self, key: str) -> None:
        """Keep an entry whatever the quota says."""
        write_record(self.pins / key, b"")

    def unpin(self, key: str) -> None:
        """Leave an entry to eviction again."""
        remove_file(self.pins / key)

    def lock_path(self, key: str) -> Path:
        """The lock file under which an entry is made."""
        return self.locks / f"{key[:2]}.lock"

    def _entry_path(self, key: str) -> Path:
        return self.entries_folder / f"{key}{SUFFIX}"


def write_record(path: Path, data: bytes) -> None:
    """Publish a small file of the cache, which not everybody can write to, whatever the umask."""
    from ctx_formats import atomic_write  # noqa: PLC0415 - lazy: rare

    with atomic_write.create_sibling_file(path) as (file, temporary):
        file.write(data)
    temporary.chmod(temporary.stat().st_mode & ~stat.S_IWOTH)
    atomic_write.publish(temporary, path, replace=True)

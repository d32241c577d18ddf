"""Entries of the cache in one file, to seed the cache of another machine."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.errors import FormatError, Reason
from ort_lite.model_cache.entry import MAX_BYTES, OBJECT_NAME, CacheEntry, CacheObject, read_entry
from ort_lite.model_cache.eviction import evict
from ort_lite.model_cache.objects import protect_object
from ort_lite.model_cache.verification import file_problem, object_problem
from ort_lite.shortages import write_error
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import IO, BinaryIO

    from ort_lite.model_cache.store import CacheStore

CHUNK = 1 << 20
FORMAT = 1
ABOUT = "archive.json"
"""The first member: {"format": 1}."""
_MOST_ABOUT = 1 << 16


def export_entries(store: CacheStore, entries: Sequence[CacheEntry], target: Path) -> None:
    """Write a tar file: `ABOUT`, then of each entry its objects and the entry. It names no user.

    Raises:
        FormatError: An entry is damaged (reason integrity).
        InvalidArgument: `target` is there.
        Fail: It cannot be written, or an object is gone.
    """
    try:
        _write_archive(store, entries, target)
    except FileExistsError as exc:
        raise InvalidArgument(
            f"{target} exists already; name another file, or remove it first"
        ) from exc
    except OSError as exc:
        raise write_error(exc, f"the archive {target} cannot be written") from exc


def _write_archive(store: CacheStore, entries: Sequence[CacheEntry], target: Path) -> None:
    with (
        create_sibling_file(target) as (file, temporary),
        tarfile.open(fileobj=file, mode="w") as archive,
    ):
        about = json.dumps({"format": FORMAT}).encode()
        member = tarfile.TarInfo(ABOUT)
        member.size = len(about)
        archive.addfile(member, io.BytesIO(about))
        for entry in entries:
            for one in entry.objects:
                _require_sound(one, object_problem(store, one))
                path = store.objects / one.name
                archive.add(path, f"objects/{one.name}", filter=_nobody_s)
            path = store.entries_folder / f"{entry.key}.json"
            archive.add(path, f"entries/{entry.key}.json", filter=_nobody_s)
    publish(temporary, target, replace=False)


def import_entries(store: CacheStore, source: Path, quota: int) -> list[CacheEntry]:
    """Take the entries of a file that `export_entries` wrote; each is checked as a whole.

    What was in the cache and was not used for longest goes where the quota asks for it.

    Args:
        store: The cache.
        source: The file.
        quota: Bytes that the cache may take; a file that holds more is refused.

    Raises:
        FormatError: The file is damaged, not whole or holds something else, or (reason untrusted)
            an entry was not made with the cache's key; entries before that are taken, and nothing
            else is.
        Fail: The file cannot be read, or the cache cannot be written to.
    """
    try:
        return _import_from(store, source, quota)
    except OSError as exc:
        doing = f"the entries of {source} cannot be imported into {store.folder}"
        raise write_error(exc, doing) from exc


def _import_from(store: CacheStore, source: Path, quota: int) -> list[CacheEntry]:
    store.prepare()
    intake = _Intake(store, quota)
    with source.open("rb") as file:
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                members = iter(archive)
                _require_format(archive, next(members, None))
                for member in members:
                    intake.take(archive, member)
                _require_end(file, archive.offset)
            intake.require_named()
        except FormatError:
            raise
        except (tarfile.TarError, ValueError, OverflowError, RecursionError) as exc:
            # tarfile lets numbers in headers of pax and of sparse files raise what they raise,
            # and calls itself for each of several headers of one member
            raise FormatError("archive", str(exc), "a tar file", file=str(source)) from exc
        finally:
            store.discard(intake.unnamed.values())
    if intake.taken:
        evict(store, quota, keep=(intake.taken[-1].key,))
    return intake.taken


class _Intake:
    """The members of an archive that have been imported so far.

    Attributes:
        taken: Entries, committed.
        unnamed: Objects whose entry has not come yet, by name.
    """

    def __init__(self, store: CacheStore, quota: int) -> None:
        self.taken: list[CacheEntry] = []
        self.unnamed: dict[str, CacheObject] = {}
        self._sound: set[CacheObject] = set()
        self._store = store
        self._quota = quota
        self._size = 0

    def take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Keep one object; or commit one entry, whose objects came before it."""
        folder, _, name = member.name.partition("/")
        content = archive.extractfile(member) if _is_plain(member) else None
        if content is None or "/" in name or folder not in ("objects", "entries"):
            raise FormatError("archive", f"'{member.name[:80]}'", "objects and entries only")
        if folder == "entries":
            self._commit(name, content)
        elif OBJECT_NAME.fullmatch(name):
            self._keep(CacheObject(name, member.size), content)
        else:
            raise FormatError("archive", f"object '{name[:80]}'", "<digest>.onnx or .bin")

    def require_named(self) -> None:
        """Find an archive that lacks entries."""
        if self.unnamed:
            raise FormatError("archive", f"no entry names {min(self.unnamed)}", "a whole archive")

    def _keep(self, one: CacheObject, content: IO[bytes]) -> None:
        """Store the bytes under their name, if it is theirs; what is there under it stays."""
        self._size += one.size
        if self._size > self._quota:
            raise FormatError("archive", "more than the quota", f"{self._quota} bytes at most")
        if object_problem(self._store, one):
            folder = self._store.objects
            with create_sibling_file(folder / "imported") as (file, temporary):
                while chunk := content.read(CHUNK):
                    file.write(chunk)
                file.flush()
                _require_sound(one, file_problem(temporary, one))
            protect_object(temporary)
            publish(temporary, folder / one.name, replace=True)
            self.unnamed[one.name] = one
        self._sound.add(one)

    def _commit(self, name: str, content: IO[bytes]) -> None:
        entry = read_entry(content.read(MAX_BYTES + 1), name.removesuffix(".json"))
        self._store.require_mac(entry)
        for one in entry.objects:
            if one not in self._sound:
                _require_sound(one, object_problem(self._store, one))
                self._sound.add(one)
        self._store.commit(entry)
        self.taken.append(entry)
        for one in entry.objects:
            self.unnamed.pop(one.name, None)


def _require_format(archive: tarfile.TarFile, member: tarfile.TarInfo | None) -> None:
    """Find an archive of another format by its first member.

    Raises:
        FormatError: It is one, or does not say so.
    """
    content = archive.extractfile(member) if member is not None and _is_plain(member) else None
    if member is None or content is None or member.name != ABOUT:
        actual = f"'{member.name[:80]}' first" if member is not None else "nothing"
        raise FormatError("archive", actual, f"'{ABOUT}', as `ort-lite cache export` writes")
    try:
        about = json.loads(content.read(_MOST_ABOUT))
    except (ValueError, RecursionError) as exc:
        raise FormatError(f"archive.{ABOUT}", str(exc)[:80], "JSON") from exc
    written = about.get("format") if isinstance(about, dict) else None
    if type(written) is not int or written != FORMAT:
        raise FormatError("archive.format", repr(written)[:40], str(FORMAT))


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Whether it is a file all bytes of which are in the archive: a sparse one may be any size."""
    return member.isreg() and not member.issparse()


def _require_end(file: BinaryIO, offset: int) -> None:
    """Find an archive that was cut off or damaged: tarfile takes what it cannot read for the end.

    An archive ends with two blocks of zeros, and is filled up with more (POSIX pax, ustar).
    """
    file.seek(offset)
    rest = file.read(2 * tarfile.RECORDSIZE)
    if len(rest) < 2 * tarfile.BLOCKSIZE or any(rest):
        raise FormatError("archive", f"no end at byte {offset}", "a whole archive")


def _require_sound(one: CacheObject, problem: str) -> None:
    if problem:
        raise FormatError(f"object {one.name}", problem, reason=Reason.INTEGRITY)


def _nobody_s(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without who wrote the file, and when."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member

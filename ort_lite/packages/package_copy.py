"""The local copy of a package that is not a folder here, of which only what is needed is fetched.

The cache folder has, for each package, a folder `packages/<digest>` and next to it the list of its
files, `<digest>.json`. The folder begins with the package's folders and its small files, among
them all that describe it. The files of a variant follow when a session is about to judge or load
that variant, each in one step: a file with its name is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.atomic_folder import replace_folder
from ctx_formats.atomic_write import create_sibling_file, publish, write_file
from ctx_formats.package_manifest import MANIFEST
from ctx_formats.package_reader import MAX_JSON_BYTES
from ort_lite.context.keys import CACHE_FOLDER_VARIABLE, FOLDER_KEY
from ort_lite.model_cache.user_folder import user_cache_folder
from ort_lite.packages.package_files import (
    INSTALL_REMOTE,
    ZIP_ENDING,
    PackageUnreachable,
    TarFiles,
    UrlFiles,
    ZipFiles,
    is_url,
    refuse_damage,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ort_lite.packages.package_files import PackageFiles

PACKAGES_FOLDER = "packages"
SMALL_BYTES = 1 << 16
"""Files up to this size are copied at once."""
_CHUNK = 1 << 20


class PackageCopy:
    """A folder with those files of a package that have been fetched so far.

    Attributes:
        folder: The copy; it has the package's folders and its small files from the beginning.
    """

    def __init__(self, source: str, cache: Path) -> None:
        """Make the copy's folder, or find the one that an earlier session made.

        Args:
            source: A URL, or the path of an archive.
            cache: The folder of caches.

        Raises:
            Fail: fsspec or a package that it needs for the URL is missing, or the copy cannot be
                made.
            NoSuchFile: There is no manifest.
            InvalidGraph: The archive is damaged, or has names that lead out of the package.
        """
        self._source = source
        with self._fetching(cache):
            # An archive that is the same file has the same manifest; a server is asked for it.
            manifest = b"" if not is_url(source) else self._read_manifest()
            version = source.encode() if is_url(source) else _describe_file(source)
            name = hashlib.sha256(version + b"\0" + manifest).hexdigest()
            self.folder = cache / PACKAGES_FOLDER / name
            listing = self.folder.with_name(f"{name}.json")
            if not (listing.is_file() and (self.folder / MANIFEST).is_file()):
                self.folder.parent.mkdir(parents=True, exist_ok=True)
                self._begin(listing, manifest or self._read_manifest())
            self._sizes: Mapping[str, int | None] = json.loads(listing.read_bytes())

    def fetch(self, places: Collection[str]) -> None:
        """Copy what is not here yet of some files and folders.

        Args:
            places: Names relative to the package.

        Raises:
            PackageUnreachable: A file cannot be read, or the copy not written.
            InvalidGraph: The archive is damaged.
        """
        prefixes = tuple(f"{place}/" for place in places)
        self._fetch_names(n for n in self._sizes if n in places or n.startswith(prefixes))

    def fetch_all(self) -> None:
        """Copy every file that is not here yet; raises as `fetch`."""
        self._fetch_names(self._sizes)

    def _fetch_names(self, names: Iterable[str]) -> None:
        absent = [name for name in names if not (self.folder / name).exists()]
        if not absent:
            return
        with self._fetching(self.folder), closing(_open_files(self._source)) as files:
            for name in absent:
                self._copy(files, name, self.folder / name, self._sizes[name])

    def _begin(self, listing: Path, manifest: bytes) -> None:
        """Make the folder with its small files, in one step; before it the list of all files."""
        try:
            with closing(_open_files(self._source)) as files:
                sizes = files.list_sizes()
                write_file(listing, json.dumps(sizes).encode(), replace=True)
                with replace_folder(self.folder, replace=False) as folder:
                    for name, size in sizes.items():
                        (folder / name).parent.mkdir(parents=True, exist_ok=True)
                        if name.endswith(".json") or (size is not None and size <= SMALL_BYTES):
                            self._copy(files, name, folder / name, size)
                    if (folder / MANIFEST).read_bytes() != manifest:
                        raise _replaced_error(self._source)
        except FileExistsError:
            if not (self.folder / MANIFEST).is_file():  # else another process was faster
                raise

    def _copy(self, files: PackageFiles, name: str, target: Path, size: int | None) -> None:
        """Copy one file; it gets its name when it is whole."""
        with files.open(name) as source, create_sibling_file(target) as (file, temporary):
            count = 0
            while chunk := source.read(_CHUNK):
                count += file.write(chunk)
            if size is not None and count != size:
                raise _replaced_error(self._source)
        publish(temporary, target, replace=True)

    def _read_manifest(self) -> bytes:
        with closing(_open_files(self._source)) as files, files.open(MANIFEST) as file:
            return file.read(MAX_JSON_BYTES + 1)

    @contextmanager
    def _fetching(self, target: Path) -> Iterator[None]:
        """Raise what a file system, fsspec or an archive raises as a typed error."""
        try:
            with refuse_damage(self._source):
                yield
        except (ImportError, ValueError) as exc:  # a protocol that is unknown, or lacks its package
            install = f": {INSTALL_REMOTE}" if isinstance(exc, ImportError) else ""
            raise PackageUnreachable(
                f"the package {self._source} cannot be opened: {exc}{install}"
            ) from exc
        except OSError as exc:
            raise PackageUnreachable(
                f"the package {self._source} cannot be copied to {target}: {exc}"
            ) from exc


def open_copy(
    source: str, config: Mapping[str, str], environment: Mapping[str, str]
) -> PackageCopy:
    """The copy of a package behind a URL or in an archive.

    Args:
        source: As a session got it.
        config: Session entries: session.ep_context_cache_dir names the cache.
        environment: ORT_LITE_CACHE_DIR does so without it.

    Raises:
        OrtLiteError: As PackageCopy.
    """
    folder = config.get(FOLDER_KEY) or environment.get(CACHE_FOLDER_VARIABLE)
    return PackageCopy(source, Path(folder or user_cache_folder(environment)).absolute())


def _open_files(source: str) -> PackageFiles:
    if is_url(source):
        return UrlFiles(source)
    return ZipFiles(source) if source.lower().endswith(ZIP_ENDING) else TarFiles(source)


def _describe_file(path: str) -> bytes:
    """What tells a file from another one of its name."""
    about = os.stat(path)  # noqa: PTH116 - a string
    parts = os.path.realpath(path), about.st_size, about.st_mtime_ns, about.st_ino
    return json.dumps(parts).encode()


def _replaced_error(source: str) -> PackageUnreachable:
    return PackageUnreachable(
        f"the package {source} was replaced while it was copied: open it again"
    )

"""Files of a model package that is not a folder here: behind a URL, or in a zip or tar archive."""

from __future__ import annotations

import posixpath
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

from ctx_formats.errors import Reason
from ctx_formats.package_manifest import MANIFEST
from ort_lite.status import Fail, InvalidArgument, InvalidGraph, NoSuchFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Member = TypeVar("Member")
ZIP_ENDING = ".zip"
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz")
ARCHIVE_ENDINGS = (ZIP_ENDING, *TAR_ENDINGS)
MAX_FILES = 100_000
INSTALL_REMOTE = 'pip install "ort-lite[remote]" installs what https:// needs'
_MISSING = (
    "a package behind a URL needs the package fsspec, which cannot be imported ({}): "
    f"{INSTALL_REMOTE}"
)


class PackageUnreachable(Fail):
    """A package's file cannot be fetched from where the package is."""


class PackageFiles(Protocol):
    """Files by their names relative to the package, with "/" between the parts."""

    def close(self) -> None:
        """Let go of the archive or the connection."""
        ...

    def list_sizes(self) -> Mapping[str, int | None]:
        """Size in bytes of each file; None if it is not known.

        Raises:
            InvalidGraph: A name leads out of the package.
        """
        ...

    def open(self, name: str) -> IO[bytes]:
        """A file of the package, to be read and closed.

        Raises:
            NoSuchFile: It is not there.
        """
        ...


def is_url(source: object) -> bool:
    """Whether a package's path is a URL, such as https://host/x.ortpackage."""
    return isinstance(source, str) and "://" in source


def is_archive(source: str) -> bool:
    """Whether a package's path has the name of an archive."""
    return source.lower().endswith(ARCHIVE_ENDINGS)


class UrlFiles:
    """The files below a URL that fsspec opens: https, s3, zip::https and others."""

    def __init__(self, url: str) -> None:
        """Find the URL's file system.

        Raises:
            Fail: fsspec, or a package that it needs for the URL, is missing.
        """
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - lazy: rare
        except ImportError as exc:
            raise Fail(_MISSING.format(exc)) from exc
        self._url = url
        self._system: Any  # fsspec has no types
        self._system, root = url_to_fs(url)
        self._root = root.rstrip("/")

    def close(self) -> None:
        """See PackageFiles; fsspec keeps its connections for all that use the file system."""

    def list_sizes(self) -> Mapping[str, int | None]:
        """See PackageFiles."""
        sizes: dict[str, int | None] = {}
        for path, about in self._system.find(self._root, detail=True).items():
            inside = path.startswith(self._root)
            name = path[len(self._root) :].lstrip("/") if inside else ""
            size = about.get("size")
            sizes[name or path] = size if isinstance(size, int) else None
        _require_names(sizes, self._url)
        return sizes

    def open(self, name: str) -> IO[bytes]:
        """See PackageFiles."""
        try:
            file: IO[bytes] = self._system.open(posixpath.join(self._root, name), "rb")
        except (FileNotFoundError, KeyError) as exc:  # KeyError: not in an archive
            raise _missing_error(self._url, name) from exc
        return file


class ZipFiles:
    """The members of a zip file; the package may be the only folder in it."""

    def __init__(self, path: str) -> None:
        """Open the archive.

        Raises:
            InvalidGraph: It is not a zip file.
            OSError: It cannot be opened.
        """
        import zipfile  # noqa: PLC0415 - lazy: rare

        self._path = path
        with refuse_damage(path):
            self._archive = zipfile.ZipFile(path)
        # As the archive spells names: zipfile cuts them at NUL, and on Windows replaces `\\`.
        members = {i.orig_filename: i for i in self._archive.infolist() if not i.is_dir()}
        self._members = _without_folder(members)

    def close(self) -> None:
        """See PackageFiles."""
        self._archive.close()

    def list_sizes(self) -> Mapping[str, int | None]:
        """See PackageFiles."""
        _require_names(self._members, self._path)
        return {name: member.file_size for name, member in self._members.items()}

    def open(self, name: str) -> IO[bytes]:
        """See PackageFiles."""
        if name not in self._members:
            raise _missing_error(self._path, name)
        try:
            return self._archive.open(self._members[name])
        except (RuntimeError, NotImplementedError) as exc:  # encrypted; an unknown compression
            raise _damage_error(self._path, exc) from exc


class TarFiles:
    """The members of a tar file, compressed with gzip or not; see ZipFiles."""

    def __init__(self, path: str) -> None:
        """Open the archive and find its members.

        Raises:
            InvalidGraph: It is not a tar file, or has links or devices.
            OSError: It cannot be opened.
        """
        import tarfile  # noqa: PLC0415 - lazy: rare

        self._path = path
        with ExitStack() as undo, refuse_damage(path):
            self._archive = undo.enter_context(tarfile.open(path))
            members = [member for member in self._archive if not member.isdir()]
            odd = next((member.name for member in members if not member.isreg()), None)
            if odd is not None:
                raise _name_error(path, odd, "is a link or a device")
            undo.pop_all()
        self._members = _without_folder({posixpath.normpath(m.name): m for m in members})

    def close(self) -> None:
        """See PackageFiles."""
        self._archive.close()

    def list_sizes(self) -> Mapping[str, int | None]:
        """See PackageFiles."""
        _require_names(self._members, self._path)
        return {name: member.size for name, member in self._members.items()}

    def open(self, name: str) -> IO[bytes]:
        """See PackageFiles."""
        file = self._archive.extractfile(self._members[name]) if name in self._members else None
        if file is None:
            raise _missing_error(self._path, name)
        return file


@contextmanager
def refuse_damage(label: str) -> Iterator[None]:
    """Raise what is wrong with an archive's bytes as a typed error.

    Raises:
        InvalidGraph: Reason integrity; what zipfile, tarfile and their decompressors raise.
    """
    import struct  # noqa: PLC0415 - lazy: rare
    import tarfile  # noqa: PLC0415 - lazy: rare
    import zipfile  # noqa: PLC0415 - lazy: rare
    import zlib  # noqa: PLC0415 - lazy: rare

    damage = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, struct.error)
    try:
        yield
    except (*damage, NotImplementedError, OverflowError, RecursionError) as exc:
        raise _damage_error(label, exc) from exc


def _damage_error(label: str, exc: Exception) -> InvalidGraph:
    return InvalidGraph(
        f"the archive {label} cannot be read: {exc} (reason: {Reason.INTEGRITY})",
        reason=Reason.INTEGRITY,
        hint="get the package again",
    )


def _without_folder(members: Mapping[str, Member]) -> Mapping[str, Member]:
    """The members by their names in the package, which may be the only folder of the archive."""
    tops = {name.partition("/")[0] for name in members}
    if MANIFEST in members or len(tops) != 1:
        return members
    skipped = len(tops.pop()) + 1
    return {name[skipped:]: member for name, member in members.items()}


def _require_names(names: Iterable[str], label: str) -> None:
    """Check that names stay inside the package, on every system.

    Raises:
        InvalidGraph: One does not.
        InvalidArgument: There are too many.
    """
    for count, name in enumerate(names):
        parts = name.split("/")
        if not name or not set(parts).isdisjoint(("", ".", "..")) or set(name) & set("\\:\0"):
            raise _name_error(label, name, "leads out of the package")
        if count >= MAX_FILES:
            raise InvalidArgument(f"{label} has over {MAX_FILES} files: is it a model package?")


def _name_error(label: str, name: str, why: str) -> InvalidGraph:
    return InvalidGraph(
        f"the package {label} has a file with the name {name[:200]!r}, which {why}",
        reason=Reason.UNSAFE_PATH,
    )


def _missing_error(label: str, name: str) -> NoSuchFile:
    return NoSuchFile(f"Load model package from {label} failed: it has no {name}")

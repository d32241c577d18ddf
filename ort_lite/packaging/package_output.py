"""Where a package is written: a folder, or a zip or tar archive; whole or not at all.

The same files give the same archive: names are sorted behind the manifest, times and owners are
left out, and nothing but .tar.gz is compressed.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ctx_formats.atomic_folder import replace_folder
from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.directory_digest import list_files
from ctx_formats.package_manifest import MANIFEST
from ctx_formats.temporary_files import temporary_folder
from ort_lite.packages.package_files import ZIP_ENDING, TarFiles, ZipFiles, is_archive
from ort_lite.status import InvalidArgument, OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FIRST_TIME = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip file can say."""
_MODE = 0o644
_CHUNK = 1 << 20


@contextmanager
def replace_package(output: Path, *, replace: bool) -> Iterator[Path]:
    """A folder for a package's files, which become `output` when the body has filled it.

    Args:
        output: A folder, or an archive by its name.
        replace: Whether an existing package gives way.

    Raises:
        OSError: It cannot be written; nothing is left of it.
    """
    output = output.absolute()
    if not is_archive(output.name):
        with replace_folder(output, replace=replace) as folder:
            yield folder
        return
    with temporary_folder(f".{output.name}.", parent=output.parent) as folder_name:
        yield Path(folder_name)
        with create_sibling_file(output) as (file, temporary):
            _write_archive(folder_name, file, output.name)
        publish(temporary, output, replace=replace)


def require_replaceable(output: Path, *, force: bool) -> None:
    """Check that a package may be written to `output`.

    Raises:
        InvalidArgument: Something is there, and it is not a package or must stay.
    """
    if not (output.exists() or output.is_symlink()):
        return
    if not _is_package(output):
        raise InvalidArgument(f"{output} exists and is not a model package: name another one")
    if not force:
        raise InvalidArgument(f"{output} exists already: --force replaces it")


def _write_archive(folder: str, file: IO[bytes], name: str) -> None:
    """Write the files below a folder as an archive of the kind that `name` ends in."""
    files = list_files(folder)
    ordered = {MANIFEST: files[MANIFEST], **dict(sorted(files.items()))}
    lowered = name.lower()
    if lowered.endswith(ZIP_ENDING):
        _write_zip(ordered, file)
    elif lowered.endswith(".tar"):
        _write_tar(ordered, file)
    else:
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed:
            _write_tar(ordered, compressed)


def _write_zip(files: Mapping[str, str], file: IO[bytes]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, path in files.items():
            info = zipfile.ZipInfo(name, _FIRST_TIME)
            info.create_system = 3  # Unix, whichever system writes it
            info.external_attr = _MODE << 16
            info.file_size = Path(path).stat().st_size
            with Path(path).open("rb") as source, archive.open(info, "w") as member:
                while chunk := source.read(_CHUNK):
                    member.write(chunk)


def _write_tar(files: Mapping[str, str], file: IO[bytes] | gzip.GzipFile) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = Path(path).stat().st_size, _MODE
            with Path(path).open("rb") as source:
                archive.addfile(info, source)


def _is_package(output: Path) -> bool:
    if not is_archive(output.name):
        return (output / MANIFEST).is_file()
    try:
        kind = ZipFiles if output.name.lower().endswith(ZIP_ENDING) else TarFiles
        with closing(kind(str(output))) as files, files.open(MANIFEST):
            return True
    except (OrtLiteError, OSError):
        return False

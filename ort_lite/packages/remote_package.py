"""Model packages behind a URL: copied whole into the user's cache, and used from there.

fsspec opens the URL: https, s3, zip::https and others. The package's manifest decides whether a
copy is still the present one; a copy appears in one step, so sessions never see half a package.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctx_formats.atomic_folder import replace_folder
from ctx_formats.package_manifest import MANIFEST
from ctx_formats.package_reader import MAX_JSON_BYTES
from ort_lite.context.keys import CACHE_FOLDER_VARIABLE, FOLDER_KEY
from ort_lite.model_cache.user_folder import user_cache_folder
from ort_lite.status import Fail, InvalidArgument, InvalidGraph, NoSuchFile

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGES_FOLDER = "packages"
MAX_FILES = 100_000
_CHUNK = 1 << 20
_MISSING = (
    "a package behind a URL needs the package fsspec, which cannot be imported ({}): "
    "pip install 'ort-lite[remote]'"
)


def is_url(source: object) -> bool:
    """Whether a package's path is a URL, such as https://host/x.ortpackage."""
    return isinstance(source, str) and "://" in source


def copy_package(url: str, config: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The folder of a package's copy, made now or by an earlier session.

    Args:
        url: Of the package's folder, as fsspec opens it.
        config: Session entries: session.ep_context_cache_dir names the cache.
        environment: ORT_LITE_CACHE_DIR does so without it.

    Raises:
        Fail: fsspec or a package that it needs for the URL is missing, or the copy cannot be made.
        NoSuchFile: There is no manifest behind the URL.
        InvalidGraph: The package has names that lead out of it.
    """
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - lazy: rare
    except ImportError as exc:
        raise Fail(_MISSING.format(exc)) from exc
    cache = Path(
        config.get(FOLDER_KEY)
        or environment.get(CACHE_FOLDER_VARIABLE)
        or user_cache_folder(environment)
    ).absolute()
    try:
        system, root = url_to_fs(url)
        manifest = _read_manifest(system, root, url)
        name = hashlib.sha256(url.encode() + b"\0" + manifest).hexdigest()
        folder = cache / PACKAGES_FOLDER / name
        if not (folder / MANIFEST).is_file():
            folder.parent.mkdir(parents=True, exist_ok=True)
            _copy(system, root, folder, manifest)
    except (ImportError, ValueError) as exc:  # a protocol that is unknown, or lacks its package
        raise Fail(f"the package {url} cannot be opened: {exc}") from exc
    except OSError as exc:
        raise Fail(f"the package {url} cannot be copied to {cache}: {exc}") from exc
    return str(folder)


def _read_manifest(system: Any, root: str, url: str) -> bytes:  # noqa: ANN401 - fsspec has no types
    try:
        with system.open(posixpath.join(root, MANIFEST), "rb") as file:
            data: bytes = file.read(MAX_JSON_BYTES + 1)
    except (FileNotFoundError, KeyError) as exc:  # KeyError: not in an archive
        raise NoSuchFile(f"Load model package from {url} failed: it has no {MANIFEST}") from exc
    return data


def _copy(system: Any, root: str, folder: Path, manifest: bytes) -> None:  # noqa: ANN401 - as above
    """Copy all files; the manifest is the one that was read, or the copy is refused."""
    names = _list_names(system, root)
    try:
        with replace_folder(folder, replace=False) as target:
            for name, path in names.items():
                place = target / name
                place.parent.mkdir(parents=True, exist_ok=True)
                with system.open(path, "rb") as source, place.open("xb") as file:
                    while chunk := source.read(_CHUNK):
                        file.write(chunk)
            if (target / MANIFEST).read_bytes() != manifest:
                raise Fail(f"the package {root} was replaced while it was copied: open it again")
    except FileExistsError:
        if not (folder / MANIFEST).is_file():  # else another process was faster
            raise


def _list_names(system: Any, root: str) -> dict[str, str]:  # noqa: ANN401 - as above
    """Paths of the package's files by their names relative to it.

    Raises:
        InvalidGraph: One leads out of the package, or there are too many.
    """
    names: dict[str, str] = {}
    base = root.rstrip("/")
    for path in system.find(root):
        name = path[len(base) :].lstrip("/") if path.startswith(base) else ""
        parts = name.split("/")
        if not name or not set(parts).isdisjoint(("", ".", "..")) or "\\" in name or ":" in name:
            raise InvalidGraph(f"the package {root} has a file with the name {path!r}")
        names[name] = path
        if len(names) > MAX_FILES:
            raise InvalidArgument(f"{root} has over {MAX_FILES} files: is it a model package?")
    return names


def local_path(
    source: str | os.PathLike[str], config: Mapping[str, str], environment: Mapping[str, str]
) -> str:
    """The folder of a package: `source`, or the copy of what is behind a URL."""
    text = os.fspath(source)
    return copy_package(text, config, environment) if is_url(source) else text

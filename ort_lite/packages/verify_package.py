"""Compares all files of a model package with the digests that it records."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctx_formats.directory_digest import digest_file, digest_folder, list_files
from ctx_formats.errors import FormatError, Reason
from ctx_formats.package_manifest import ASSETS_FOLDER
from ctx_formats.package_paths import ASSET_URI
from ort_lite.packages.package_trust import require_signed_files, require_signed_manifest
from ort_lite.packages.variant_notes import read_notes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_formats.package_manifest import PackageVariant
    from ctx_formats.package_reader import PackageFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageProblem:
    """A file that is not what the package records.

    Attributes:
        path: Relative to the package.
        reason: Of the closed list.
    """

    path: str
    reason: Reason
    message: str

    def to_json(self) -> dict[str, Any]:
        """The problem as JSON values."""
        return {"path": self.path, "reason": str(self.reason), "message": self.message}


def find_problems(folder: PackageFolder) -> list[PackageProblem]:
    """Every file with another digest than the package records, or that is missing.

    Shared folders are digested as their names say; a variant's files as ort_lite recorded them.
    A variant of another producer has no digests, and only its model must exist.
    """
    problems = [
        problem
        for component in folder.manifest.components
        for variant in component.variants
        for problem in _variant_problems(folder, variant)
    ]
    return problems + list(_asset_problems(folder))


def verify_signature(folder: PackageFolder, trust: str) -> str:
    """Id of the trusted key that signed the package and every file of it.

    Raises:
        InvalidGraph: Reason untrusted; nobody trusted has.
    """
    proof = require_signed_manifest(folder, trust)
    require_signed_files(folder, proof)
    return proof.key.id


def _variant_problems(folder: PackageFolder, variant: PackageVariant) -> Iterator[PackageProblem]:
    base = variant.folder or folder.root
    try:
        notes = read_notes_of(variant)
        for name, recorded in (notes.files if notes is not None else {}).items():
            path = folder.paths.resolve(name, base, f"variant '{variant.name}'.files")
            where = _relative(path, folder)
            mismatch = _digest_problem(path, recorded.size, recorded.sha256)
            if mismatch is not None:
                yield PackageProblem(path=where, reason=mismatch[0], message=mismatch[1])
    except FormatError as exc:
        yield PackageProblem(path=_relative(base, folder), reason=exc.reason, message=str(exc))
    if variant.model_path and not os.path.isfile(variant.model_path):  # noqa: PTH113 - the reader's
        path = _relative(variant.model_path, folder)
        message = f"the model of variant '{variant.name}' does not exist"
        yield PackageProblem(path=path, reason=Reason.MISSING_PAYLOAD, message=message)


def _digest_problem(path: str, size: int, sha256: str) -> tuple[Reason, str] | None:
    try:
        digest = digest_file(path)
    except FormatError as exc:
        return exc.reason, str(exc)
    if (digest.size, digest.sha256) != (size, sha256):
        return Reason.INTEGRITY, (
            f"{digest.size} bytes with SHA-256 {digest.sha256[:16]}..., expected {size} with "
            f"{sha256[:16]}..."
        )
    return None


def _asset_problems(folder: PackageFolder) -> Iterator[PackageProblem]:
    for uri in asset_uris(folder):
        where = f"{ASSETS_FOLDER}/{uri.replace(':', '-')}"
        try:
            path = folder.paths.asset_folder(uri, "shared_assets")
            digest = digest_folder(path)
        except FormatError as exc:
            yield PackageProblem(path=where, reason=exc.reason, message=str(exc))
            continue
        if digest != uri:
            message = f"the folder's digest is {digest[:23]}..., expected {uri[:23]}..."
            yield PackageProblem(path=where, reason=Reason.INTEGRITY, message=message)


def asset_uris(folder: PackageFolder) -> list[str]:
    """URIs of all shared folders: those of the manifest, and those on the disk."""
    uris = set(folder.manifest.shared_assets)
    try:
        with os.scandir(os.path.join(folder.root, ASSETS_FOLDER)) as entries:  # noqa: PTH118 - as above
            names = [entry.name.replace("-", ":", 1) for entry in entries]
    except OSError:
        names = []
    return sorted(uris | {name for name in names if ASSET_URI.fullmatch(name)})


def package_size(folder: PackageFolder) -> int:
    """Bytes of all files of a package.

    Raises:
        FormatError: It has something that is neither a file nor a folder.
    """
    return sum(os.stat(path).st_size for path in list_files(folder.root).values())  # noqa: PTH116 - as above


def _relative(path: str, folder: PackageFolder) -> str:
    return os.path.relpath(path, folder.root).replace(os.sep, "/")

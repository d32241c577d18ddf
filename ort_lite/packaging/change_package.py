"""Writes a changed copy of a model package: with fewer variants, or signed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.atomic_write import write_file
from ctx_formats.directory_digest import digest_file, list_files
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from ctx_formats.package_manifest import (
    ASSETS_FOLDER,
    MANIFEST,
    ORT_LITE,
    PackageManifest,
    PackageVariant,
    encode_manifest,
)
from ctx_formats.package_paths import ASSET_URI
from ctx_formats.package_signature import SIGNATURE_FILE, PackageSignature, encode_signatures
from ort_lite.context.signing import sign_file
from ort_lite.options import SessionOptions
from ort_lite.packages.model_package import open_package, open_package_at
from ort_lite.packages.package_trust import sign_file_entry, signable_files
from ort_lite.packages.variant_notes import read_notes_of
from ort_lite.packages.verify_package import find_problems
from ort_lite.packaging.package_output import replace_package
from ort_lite.status import Fail, InvalidArgument, InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Collection

    from ctx_formats.package_reader import PackageFolder
    from ctx_formats.strict_json import JsonValue
    from ort_lite.trust.private_keys import Signer


def prune_package(path: Path, output: Path, drop: Collection[str]) -> tuple[str, ...]:
    """Write a package without some variants, and without files that only these need.

    Args:
        path: The package.
        output: The new package's folder or archive; `path` is replaced in one step.
        drop: Names of variants, in any component.

    Returns:
        Names of the variants that are left.

    Raises:
        InvalidArgument: There is no such variant, none would be left, or the package is installed
            and its files lie elsewhere.
        Fail: The package cannot be written.
    """
    package, _ = open_package_at(str(path), {}, whole=True)
    manifest = _require_portable(package)
    names = [v.name for one in manifest.components for v in one.variants]
    unknown = sorted(set(drop) - set(names))
    if unknown:
        raise InvalidArgument(f"{path} has no variant '{unknown[0]}'; it has {', '.join(names)}")
    left = tuple(name for name in names if name not in drop)
    if not left:
        raise InvalidArgument(f"nothing would be left of {path}: keep one of {', '.join(names)}")
    components = tuple(
        replace(
            one,
            variants=tuple(_rebase(v, package) for v in one.variants if v.name not in drop),
        )
        for one in manifest.components
    )
    variants = [variant for one in components for variant in one.variants]
    used = {uri for variant in variants for uri in _find_uris(dict(variant.executor_info))}
    manifest = replace(manifest, components=components, shared_assets={})
    _rewrite(package, manifest, output, variants, used)
    return left


def sign_package(path: Path, output: Path, signer: Signer) -> PackageSignature:
    """Sign each model of a package, then the package as a whole; other keys' signatures go.

    Args:
        path: The package.
        output: The signed package's folder or archive; `path` is replaced in one step.
        signer: The key.

    Raises:
        InvalidGraph: A file is not what the package records.
        OrtLiteError: A model cannot be signed.
        Fail: The package cannot be written.
    """
    package, _ = open_package_at(str(path), {}, whole=True)
    _require_portable(package)
    problems = find_problems(package)
    if problems:
        first = problems[0]
        raise InvalidGraph(
            f"the package {path} is damaged, and is not signed: {first.path}: {first.message}",
            reason=first.reason,
        )
    try:
        with replace_package(output, replace=True) as folder:
            _copy_tree(package.root, folder)
            (folder / SIGNATURE_FILE).unlink(missing_ok=True)
            return _sign_copy(folder, signer)
    except OSError as exc:
        raise Fail(f"the package {output} cannot be written: {exc}") from exc


def _sign_copy(folder: Path, signer: Signer) -> PackageSignature:
    copy = open_package(str(folder))
    components = []
    for component in copy.manifest.components:
        variants = []
        for variant in component.variants:
            model = Path(variant.model_path)
            shared = model.is_relative_to(Path(copy.root, ASSETS_FOLDER))
            if variant.model_path and not shared:  # a shared folder's name is its digest
                sign_file(model, model, signer, _options_of(variant))
            variants.append(_with_digests(_rebase(variant, copy)))
        components.append(replace(component, variants=tuple(variants)))
    manifest = replace(copy.manifest, components=tuple(components))
    data = encode_manifest(manifest)
    write_file(folder / MANIFEST, data, replace=True)
    files = signable_files(copy.root)
    record = PackageSignature(
        public_key=signer.public_key,
        model_blake3=blake3(data).hexdigest(),
        model_size=len(data),
        files=tuple(sign_file_entry(name, path) for name, path in sorted(files.items())),
    )
    signed = signer.sign(record)
    assert isinstance(signed, PackageSignature), "signing keeps the class"
    write_file(folder / SIGNATURE_FILE, encode_signatures([signed]), replace=True)
    return signed


def _options_of(variant: PackageVariant) -> SessionOptions:
    options = SessionOptions()
    for key, value in variant.session_options.items():
        options.add_session_config_entry(key, value)
    return options


def _with_digests(variant: PackageVariant) -> PackageVariant:
    """The variant with the digests of its files as they are now."""
    notes = read_notes_of(variant)
    if notes is None:
        return variant
    files = {name: digest_file(Path(variant.folder, name)) for name in notes.files}
    notes = replace(notes, files=files)
    return replace(variant, executor_info={**variant.executor_info, ORT_LITE: notes.to_json()})


def _require_portable(package: PackageFolder) -> PackageManifest:
    if not package.paths.portable:
        raise InvalidArgument(
            f"{package.root} has the layout 'installed', and its files may lie elsewhere: change "
            "the portable package that it was made from"
        )
    return package.manifest


def _rebase(variant: PackageVariant, package: PackageFolder) -> PackageVariant:
    """The variant for a component that is inline in manifest.json."""
    if not variant.folder:
        return variant
    directory = Path(variant.folder).relative_to(package.root).as_posix()
    return replace(variant, directory=directory)


def _find_uris(value: JsonValue) -> set[str]:
    """References to shared folders anywhere in a JSON value, whosever namespace it is."""
    uris: set[str] = set()
    pending: list[JsonValue] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str) and (match := ASSET_URI.match(one)):
            uris.add(match[0])
        elif isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, list):
            pending += one
    return uris


def _rewrite(
    package: PackageFolder,
    manifest: PackageManifest,
    output: Path,
    variants: list[PackageVariant],
    uris: set[str],
) -> None:
    """Write the folders of `variants`, the shared ones of `uris`, and the manifest."""
    try:
        with replace_package(output, replace=True) as folder:
            for variant in variants:
                if variant.folder:
                    place = Path(variant.folder).relative_to(package.root)
                    _copy_tree(variant.folder, folder / place)
                elif variant.model_path:
                    place = Path(variant.model_path).relative_to(package.root)
                    (folder / place.parent).mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(variant.model_path, folder / place)
            for uri in sorted(uris):
                source = package.paths.asset_folder(uri, "shared_assets")
                _copy_tree(source, folder / ASSETS_FOLDER / uri.replace(":", "-"))
            (folder / MANIFEST).write_bytes(encode_manifest(manifest))
    except FormatError as exc:
        raise InvalidGraph(f"{package.root}: {exc}", reason=exc.reason) from exc
    except OSError as exc:
        raise Fail(f"the package {output} cannot be written: {exc}") from exc


def _copy_tree(source: str, target: Path) -> None:
    """Copy the files below a folder; symlinks are refused.

    Raises:
        FormatError: There is one, or a device.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name, path in list_files(source).items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(os.fspath(path), place)

"""The command that builds a model package again, where a file in one does not run here."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.package_manifest import MANIFEST
from ctx_formats.package_reader import read_package
from ort_lite.context.dimension_arguments import dimension_arguments
from ort_lite.context.quote_argument import is_quotable, quote_argument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.package_manifest import PackageManifest, PackageVariant
    from ctx_formats.package_reader import PackageFolder
    from ort_lite.model.loader import LoadedModel

MOST_FOLDERS = 4
"""How far above a variant's model a manifest is looked for."""
CPU = "CPUExecutionProvider"
_SUFFIX = "ExecutionProvider"


def package_of(path: str) -> PackageFolder | None:
    """The model package that has a file; None for a file of none."""
    real = os.path.realpath(path)
    for folder in list(Path(real).parents)[:MOST_FOLDERS]:
        if (folder / MANIFEST).is_file():
            try:
                package = read_package(folder)
            except FormatError:
                continue
            if _variant_of(package.manifest, real) is not None:
                return package
    return None


def rebuild_text(
    package: PackageFolder,
    loaded: LoadedModel,
    sources: Mapping[str, Mapping[str, str]],
    device: str,
) -> str:
    """How to build a package again with a variant compiled on this machine.

    Ends with a command that can be pasted, where the package is a folder with the source model and
    the command can say all that is in it.

    Args:
        package: The package.
        loaded: The variant's model.
        sources: Execution providers that compile it, with their options.
        device: Kind of device in place of an option; "" for none.
    """
    variant = _variant_of(package.manifest, os.path.realpath(loaded.path or ""))
    assert variant is not None, "package_of has found it"
    before = (
        f"build the package {_shorten_path(package)} again on this machine, because its manifest "
        "has the digests of its files"
    )
    target = _target(variant, sources, device)
    command = _command(package, variant, target, loaded) if target else ""
    return f"{before}: {command}" if command else f"{before} (see ort-lite package build --help)"


def _variant_of(manifest: PackageManifest, real: str) -> PackageVariant | None:
    variants = (one for component in manifest.components for one in component.variants)
    return next((one for one in variants if os.path.realpath(one.model_path) == real), None)


def _shorten_path(package: PackageFolder) -> str:
    """Path of a package as it is short to read, from the working folder where it is below."""
    root = Path(package.root)
    try:
        return str(root.relative_to(Path.cwd().resolve()))
    except (OSError, ValueError):
        return str(root)


def _command(
    package: PackageFolder,
    variant: PackageVariant,
    target: str,
    loaded: LoadedModel,
) -> str:
    """`ort-lite package build` for the same package; "" where it would lose something."""
    manifest, root = package.manifest, Path(package.root)
    is_copy = root.with_name(f"{root.name}.json").is_file()  # of an archive or a URL
    if is_copy or len(manifest.components) != 1 or manifest.description:
        return ""
    variants = manifest.components[0].variants
    plain = [one for one in variants if one.ep == CPU]
    if len(plain) != 1 or any(map(_is_shared, variants)):
        return ""
    place = _shorten_path(package)
    words = ["ort-lite package build", quote_argument(_below(plain[0], package)), "-o"]
    words += [quote_argument(place), "--force", "--target", quote_argument(target)]
    for one in variants:
        if one not in (variant, plain[0]):
            words += ["--context", quote_argument(f"{one.name}={_below(one, package)}")]
    words += dimension_arguments(Path(plain[0].model_path), loaded)
    if manifest.name != Path(plain[0].model_path).stem:
        words += ["--name", quote_argument(manifest.name)]
    if manifest.version:
        words += ["--package-version", quote_argument(manifest.version)]
    command = " ".join(words)
    return command if command.isprintable() else ""


def _target(variant: PackageVariant, sources: Mapping[str, Mapping[str, str]], device: str) -> str:
    """The variant as --target spells it; "" for one that has no such form."""
    if len(sources) != 1:
        return ""
    (source, options), *_ = sources.items()
    separable = all("," not in re.sub(r"\[[^][]*\]", "", value) for value in options.values())
    place = source.removesuffix(_SUFFIX).lower() + (f":{device}" if device else "")
    pairs = [f"{key}={value}" for key, value in options.items()]
    target = f"{variant.name}={','.join([place, *pairs])}"
    return target if separable and is_quotable(target) else ""


def _is_shared(variant: PackageVariant) -> bool:
    """Whether a variant has files outside of its folder, which --context would not find."""
    outside = not Path(variant.model_path).is_relative_to(variant.folder or os.sep)
    return not variant.folder or outside or bool(variant.session_options)


def _below(variant: PackageVariant, package: PackageFolder) -> str:
    """Path of a variant's model, which begins as that of the package is shown."""
    return str(Path(_shorten_path(package)) / Path(variant.model_path).relative_to(package.root))

"""Builds a model package from a source model, targets to compile for, and finished contexts."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.directory_digest import asset_uri
from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.package_manifest import (
    ASSETS_FOLDER,
    MANIFEST,
    ORT,
    ORT_LITE,
    OrtInfo,
    PackageComponent,
    PackageManifest,
    PackageVariant,
    encode_manifest,
)
from ctx_formats.temporary_files import temporary_folder
from ort_lite.context.quote_argument import quote_argument
from ort_lite.model.loader import WEIGHTS_FOLDER
from ort_lite.options import SessionOptions
from ort_lite.packages.variant_notes import SOURCE, VariantNotes
from ort_lite.packaging.package_output import replace_package, require_replaceable
from ort_lite.packaging.package_source import PackageSource, read_source
from ort_lite.session import InferenceSession
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ctx_formats.directory_digest import FileDigest

COMPONENT = "model"
DEVICE_ORDER = ("npu", "gpu", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTarget:
    """A device to compile the source model for on this machine.

    Attributes:
        ep: Full name of the execution provider.
        options: Of the execution provider.
        name: Of the variant; "" for one made of the provider and the device.
    """

    ep: str
    options: Mapping[str, str] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """Everything that a package is made of.

    Attributes:
        model: The source model, a plain one.
        targets: Compiled here.
        contexts: Context models compiled elsewhere, by variant name or with "" for a default one.
        config: Session entries of the compiles.
        dimensions: Sizes of symbolic dimensions of the compiles.
        includes_source: Whether the source model is a variant, too.
        name, version, description: Of the package.
    """

    model: Path
    targets: Sequence[BuildTarget] = ()
    contexts: Sequence[tuple[str, Path]] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    dimensions: Mapping[str, int] = field(default_factory=dict)
    includes_source: bool = True
    name: str = ""
    version: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPackage:
    """A package that was written.

    Attributes:
        path: Its folder or archive.
        variants: Names, in the order of the manifest.
        size: Bytes of all files.
        shared: Bytes that variants share and that were written once.
    """

    path: Path
    variants: tuple[str, ...]
    size: int
    shared: int


def build_package(
    plan: BuildPlan, output: Path, *, force: bool, progress: Callable[[str], None]
) -> BuiltPackage:
    """Compile, and write the package in one step.

    Equal inputs give equal bytes where the vendors' compilers do: OpenVINO and OpenCL drivers
    number what they compile, so a process that has compiled before gets other payloads.

    Args:
        plan: Everything that goes in.
        output: The package's folder, or archive by its name.
        force: Whether an existing package gives way.
        progress: Called with what is going on.

    Raises:
        OrtLiteError: A model cannot be read or compiled.
        InvalidArgument: Two variants have one name, or `output` is not a package.
        Fail: The package cannot be written.
    """
    require_replaceable(output, force=force)
    source = _read_plain(plan.model)
    contexts = [(name, _read_context(path, source)) for name, path in plan.contexts]
    with temporary_folder("ort_lite_package.") as work:
        named = [*_compile_all(plan, Path(work), progress), *contexts]
        if plan.includes_source:
            named.append((SOURCE, source))
        variants = _name_all(named)
        progress(f"writing {output}")
        try:
            with replace_package(output, replace=force) as folder:
                return replace(_write(plan, variants, folder), path=output)
        except OSError as exc:
            raise Fail(f"the package {output} cannot be written: {exc}") from exc


def _compile_all(
    plan: BuildPlan, work: Path, progress: Callable[[str], None]
) -> Iterator[tuple[str, PackageSource]]:
    for at, target in enumerate(plan.targets):
        folder = work / str(at)
        folder.mkdir()
        path = folder / f"{plan.model.stem}_ctx.onnx"
        options = SessionOptions()
        entries = {"ep.context_enable": "1", "ep.context_file_path": str(path)}
        for key, value in {**plan.config, **entries}.items():
            options.add_session_config_entry(key, value)
        for name, size in plan.dimensions.items():
            options.add_free_dimension_override_by_name(name, size)
        progress(f"compiling {plan.model.name} for {target.name or target.ep}")
        providers = [(target.ep, target.options)]
        with InferenceSession(plan.model, options, providers=providers, enable_fallback=0):
            pass
        if not path.is_file():
            raise Fail(
                f"{target.ep} compiled no node of {plan.model}: ort-lite explain "
                f"{quote_argument(str(plan.model))} "
                "shows why"
            )
        yield target.name, read_source(path)


def _read_plain(path: Path) -> PackageSource:
    source = read_source(path)
    if source.role != SOURCE:
        raise InvalidArgument(f"{path} is compiled already: name the model that it was made from")
    return source


def _read_context(path: Path, source: PackageSource) -> PackageSource:
    context = read_source(path)
    if context.role == SOURCE:
        raise InvalidArgument(f"{path} has no EPContext node: it is not a compiled model")
    for kind in ("inputs", "outputs"):
        mine, right = getattr(context, kind), getattr(source, kind)
        if mine.keys() != right.keys() or any(
            mine[name] != right[name] for name in mine if mine[name] and right[name]
        ):
            raise InvalidArgument(
                f"{path} has the {kind} {_list_types(mine)}, and {source.model} has "
                f"{_list_types(right)}: it was compiled from another model"
            )
    return context


def _list_types(types: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in list(types.items())[:8])


def _name_all(named: Sequence[tuple[str, PackageSource]]) -> list[tuple[str, PackageSource]]:
    """Each source with its variant's name: NPUs, GPUs, CPUs, and last the source model.

    onnxruntime takes the first of equals, and a variant without a device fits all of them.
    """
    variants = [(name or source.default_name(), source) for name, source in named]
    twice = [name for name, count in Counter(name for name, _ in variants).items() if count > 1]
    if twice:
        raise InvalidArgument(
            f"two variants are called '{twice[0]}': give one another name, such as "
            f"--target mine={twice[0].partition('-')[0]}"
        )
    for name, _ in variants:
        if not name.isprintable() or not set(name).isdisjoint("/\\:") or name in (".", ".."):
            raise InvalidArgument(f"a variant cannot be called '{name}': it names a folder")
        if name == ASSETS_FOLDER:
            raise InvalidArgument(f"a variant cannot be called '{name}', which has another use")
    return sorted(
        variants, key=lambda one: (one[1].role == SOURCE, DEVICE_ORDER.index(one[1].device))
    )


def _write(
    plan: BuildPlan, variants: Sequence[tuple[str, PackageSource]], folder: Path
) -> BuiltPackage:
    shared = _find_shared([source for _, source in variants])
    written: dict[str, int] = {}
    bodies, saved = [], 0
    for name, source in variants:
        options: dict[str, str] = {}
        model, own = source.model, dict(source.files)
        for locations in (frozenset(source.files), source.weights):
            files = {at: source.digests[at] for at in locations}
            uri = asset_uri(files) if files else ""
            if uri not in shared:
                continue
            place = folder / ASSETS_FOLDER / uri.replace(":", "-")
            if uri in written:
                saved += sum(digest.size for digest in files.values())
            else:
                written[uri] = _copy({at: source.files[at] for at in locations}, place)
            own = {at: path for at, path in own.items() if at not in locations}
            if source.model in locations:
                model = f"{uri}/{source.model}"
                break
            options[WEIGHTS_FOLDER] = uri
        written[name] = _copy(own, folder / name)
        bodies.append(
            _variant(name, source, model, options, {at: source.digests[at] for at in own})
        )
    manifest = PackageManifest(
        name=plan.name or plan.model.stem,
        version=plan.version,
        description=plan.description,
        components=(PackageComponent(name=COMPONENT, variants=tuple(bodies)),),
    )
    data = encode_manifest(manifest)
    (folder / MANIFEST).write_bytes(data)
    return BuiltPackage(
        path=folder,
        variants=tuple(name for name, _ in variants),
        size=sum(written.values()) + len(data),
        shared=saved,
    )


def _find_shared(sources: Sequence[PackageSource]) -> set[str]:
    """URIs of sets of files that several variants have: all files of one, or its weights."""
    uris: Counter[str] = Counter()
    for source in sources:
        sets = {frozenset(source.files), source.weights} - {frozenset()}
        uris.update({asset_uri({at: source.digests[at] for at in one}) for one in sets})
    return {uri for uri, count in uris.items() if count > 1}


def _variant(
    name: str,
    source: PackageSource,
    model: str,
    options: Mapping[str, str],
    digests: Mapping[str, FileDigest],
) -> PackageVariant:
    ort = OrtInfo(model_file=model, session_options=options)
    notes = VariantNotes(role=source.role, provider_options=source.provider_options, files=digests)
    return PackageVariant(
        name=name,
        directory=name if digests else None,  # archives lose empty folders
        ep=source.ep,
        device=source.device,
        compatibility_string=source.compatibility,
        executor_info={ORT: ort.to_json(), ORT_LITE: notes.to_json()},
    )


def _copy(files: Mapping[str, str], folder: Path) -> int:
    """Copy files below a folder; their size in bytes together."""
    size = 0
    for location, path in files.items():
        target = folder / location
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(os.path.realpath(path), target)
        size += target.stat().st_size
    return size

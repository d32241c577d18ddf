"""`ort-lite package`: builds, shows, verifies, prunes and signs model packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import (
    count_text,
    json_option,
    print_json,
    print_line,
    print_note,
    print_table,
    size_text,
)
from ort_lite.cli.package_targets import parse_context, parse_target, read_rows, require_targets
from ort_lite.cli.path_type import PATH
from ort_lite.cli.session_choice import (
    SessionChoice,
    parse_dimension,
    require_devices,
    session_choice,
)
from ort_lite.cli.signing import open_signer, passphrase_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctx_formats.package_manifest import PackageComponent, PackageVariant
    from ort_lite.packages.model_package import PackageSelection

path_argument = click.argument("package", type=PATH)
source_argument = click.argument("package", metavar="PACKAGE|URL")
component_option = click.option(
    "--component", default="", metavar="NAME", help="Component, if the package has several."
)
output_option = click.option(
    *("-o", "--output"), type=PATH,
    help="Folder or archive of the new package. Default: PACKAGE, replaced atomically.",
)  # fmt: skip


@click.group(short_help="Build, inspect and sign model packages.")
def package() -> None:
    """Build, inspect, verify, prune and sign model packages.

    A package is a folder, or an archive of it, with a model compiled for several devices, and its
    source. onnxruntime reads the same format through its C API.
    """


@package.command(short_help="Build a package from a model.")
@click.argument("model", type=PATH)
@click.option(
    *("-o", "--output"), type=PATH, required=True,
    help="Folder to write, or archive: a name that ends in .zip, .tar, .tar.gz or .tgz.",
)  # fmt: skip
@click.option(
    *("-t", "--target", "targets"), multiple=True, metavar="[NAME=]EP[:DEVICE][,KEY=VALUE...]",
    help="Compile for this device, for example openvino:cpu, openvino:npu.4000 or opencl:gpu.",
)  # fmt: skip
@click.option(
    "--context", "contexts", multiple=True, metavar="[NAME=]FILE",
    help="Add a context model that was compiled elsewhere.",
)  # fmt: skip
@click.option(
    "--row", "rows", multiple=True, metavar="ROW",
    help="Compile for this row of the hardware matrix.",
)  # fmt: skip
@click.option(
    *("-f", "--file", "matrix"), type=PATH, default=Path("hw_matrix.yaml"),
    show_default=True, help="The hardware matrix of --row.",
)  # fmt: skip
@click.option("--skip-missing", is_flag=True, help="Leave out rows that cannot be compiled here.")
@click.option("--source/--no-source", default=True, help="Add the source model as a variant.")
@click.option("--name", default="", help="Name of the package. Default: the model's.")
@click.option("--package-version", "version", default="", help="Version of the package.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a dimension.")
@click.option("--force", is_flag=True, help="Replace an existing package.")
@json_option
def build(  # noqa: PLR0913 - one parameter an option
    model: Path,
    *,
    output: Path,
    targets: Sequence[str],
    contexts: Sequence[str],
    rows: Sequence[str],
    matrix: Path,
    skip_missing: bool,
    source: bool,
    name: str,
    version: str,
    dims: Sequence[str],
    force: bool,
    as_json: bool,
) -> ExitCode:
    """Compile MODEL for targets and write them as a package, with MODEL itself.

    An existing package is replaced only with --force, in one step, once the new one is complete.
    The same command gives the same bytes.
    """
    from ort_lite.packaging.build_package import BuildPlan, build_package
    from ort_lite.status import EPFail

    chosen = [parse_target(text) for text in targets]
    missing: dict[str, str] = {}
    if rows:
        more, missing = read_rows(matrix, rows)
        require_targets(missing, skip=skip_missing)
        chosen += more
    plan = BuildPlan(
        model=model,
        targets=chosen,
        contexts=[parse_context(text) for text in contexts],
        dimensions=dict(parse_dimension(text) for text in dims),
        includes_source=source,
        name=name,
        version=version,
    )
    if not (plan.targets or plan.contexts or source):
        raise click.UsageError("nothing to put into the package: name a --target or a --context")
    try:
        built = build_package(plan, output, force=force, progress=print_note)
    except EPFail:
        for target in chosen:
            require_devices(SessionChoice(providers=((target.ep, target.options),)))
        raise
    if as_json:
        fields: dict[str, Any] = {"package": str(output), "variants": list(built.variants)}
        sizes = {"bytes": built.size, "shared_bytes": built.shared, "skipped_rows": missing}
        print_json({**fields, **sizes})
        return ExitCode.OK
    saved = f"; {size_text(built.shared)} saved by sharing" if built.shared else ""
    print_line(f"{output}: {', '.join(built.variants)}; {size_text(built.size)}{saved}")
    for row, why in missing.items():
        print_note(f"note: row {row} is left out: {why}")
    return ExitCode.OK


@package.command(short_help="Show a package's components and variants.")
@source_argument
@json_option
def inspect(package: str, *, as_json: bool) -> ExitCode:
    """Show PACKAGE's components and variants. Opens no model and needs no SDK."""
    from ort_lite.packages.model_package import open_package_at
    from ort_lite.packages.package_trust import describe_signers
    from ort_lite.packages.verify_package import asset_uris

    folder, _ = open_package_at(package, {})
    manifest, signers = folder.manifest, describe_signers(folder)
    if as_json:
        fields: dict[str, Any] = {
            "package": str(package),
            "name": manifest.name,
            "version": manifest.version,
            "description": manifest.description,
            "format": manifest.schema_version,
            "layout": manifest.layout,
            "signed_by": list(signers),
            "shared_assets": asset_uris(folder),
            "components": [_component_json(one) for one in manifest.components],
        }
        print_json(fields)
        return ExitCode.OK
    title = " ".join(part for part in (manifest.name, manifest.version) if part)
    print_line(f"{package}: {title or 'no name'}, {manifest.layout}")
    for component in manifest.components:
        print_line(f"component {component.name}")
        print_table(("variant", "provider", "device", "role", "model"), list(_rows(component)))
    for uri in asset_uris(folder):
        print_line(f"shared {uri}")
    for key in signers:
        print_line(f"signature of {key}, not verified")
    return ExitCode.OK


@package.command(short_help="Verify a package's files against their digests.")
@source_argument
@click.option(
    "--trust", multiple=True, metavar="PUBLIC_KEY",
    help="Require a signature by this key, or one of this folder, over every file.",
)  # fmt: skip
@json_option
def verify(package: str, *, trust: Sequence[str], as_json: bool) -> ExitCode:
    """Compare PACKAGE's files with the digests that it records; exit code 4 if one differs."""
    from ort_lite.packages.model_package import open_package_at
    from ort_lite.packages.verify_package import find_problems, verify_signature

    folder, _ = open_package_at(package, {}, whole=True)
    key = verify_signature(folder, "\n".join(trust) + "\n") if trust else ""
    problems = find_problems(folder)
    code = ExitCode.INVALID_GRAPH if problems else ExitCode.OK
    if as_json:
        listed = [problem.to_json() for problem in problems]
        print_json({"package": str(package), "signed_by": key, "problems": listed})
        return code
    for problem in problems:
        print_line(f"{problem.path}: {problem.message} ({problem.reason})")
    if not problems:
        signed = f", signed by {key}" if key else ""
        print_line(f"{package}: every file is as recorded{signed}")
    return code


@package.command(short_help="Show which variant fits this machine, and why not the others.")
@source_argument
@component_option
@session_choice
@json_option
def select(package: str, *, component: str, choice: SessionChoice, as_json: bool) -> ExitCode:
    """Show which variant of PACKAGE a session would load here; exit code 4 if none.

    Judges as `ort-lite check` does: no payload is passed to an SDK.
    """
    return report_selection(package, component, choice, as_json=as_json)


@package.command(short_help="Remove variants from a package.")
@path_argument
@click.option("--drop", multiple=True, metavar="VARIANT", help="Remove this variant.")
@click.option("--keep", multiple=True, metavar="VARIANT", help="Remove all but these variants.")
@output_option
@json_option
def prune(
    package: Path,
    *,
    drop: Sequence[str],
    keep: Sequence[str],
    output: Path | None,
    as_json: bool,
) -> ExitCode:
    """Remove variants from PACKAGE, and the files that only these need.

    The package is replaced in one step. Signatures are removed: sign it again.
    """
    from ort_lite.packages.model_package import open_package, open_package_at
    from ort_lite.packages.verify_package import package_size
    from ort_lite.packaging.change_package import prune_package

    if bool(drop) == bool(keep):
        raise click.UsageError(
            "name the variants to remove with --drop, or those to --keep, not both"
        )
    folder, _ = open_package_at(str(package), {}, whole=True)
    names = [v.name for one in folder.manifest.components for v in one.variants]
    unknown = sorted(set(keep) - set(names))
    if unknown:
        raise CommandError(
            ExitCode.USAGE, f"{package} has no variant '{unknown[0]}'; it has {', '.join(names)}"
        )
    before, target = package_size(folder), _choose_output(output, package)
    left = prune_package(package, target, drop or set(names) - set(keep))
    after = target.stat().st_size if target.is_file() else package_size(open_package(str(target)))
    if as_json:
        print_json({"package": str(target), "variants": list(left), "bytes": after})
        return ExitCode.OK
    print_line(
        f"{target}: {', '.join(left)}; {size_text(after)}, {size_text(max(before - after, 0))} less"
    )
    return ExitCode.OK


@package.command(short_help="Sign a package and its models.")
@path_argument
@click.option("--key", type=PATH, required=True, help="The private key.")
@passphrase_option
@output_option
@json_option
def sign(
    package: Path,
    *,
    key: Path,
    passphrase_file: Path | None,
    output: Path | None,
    as_json: bool,
) -> ExitCode:
    """Sign PACKAGE: each model, and the list of all files. Verifies digests first."""
    from ort_lite.packaging.change_package import sign_package

    target = _choose_output(output, package)
    record = sign_package(package, target, open_signer(key, passphrase_file))
    files = [one.location for one in record.files]
    if as_json:
        print_json({"package": str(target), "key": record.key_id, "files": files})
        return ExitCode.OK
    print_line(f"{target}: signed with key {record.key_id}, {count_text(len(files) + 1, 'file')}")
    return ExitCode.OK


def _choose_output(output: Path | None, package: Path) -> Path:
    """Where a changed package is written: in place of the old one, or to a new name.

    Raises:
        InvalidArgument: There is something of the new name.
    """
    from ort_lite.packaging.package_output import require_replaceable

    if output is not None:
        require_replaceable(output, force=False)
    return output or package


def report_selection(
    package: str, component: str, choice: SessionChoice, *, as_json: bool
) -> ExitCode:
    """Print the verdicts on a package's variants; INVALID_GRAPH if none may run here."""
    from ort_lite.packages.model_package import ModelPackage

    selection = ModelPackage(package, component).select(choice.session_options(), choice.providers)
    if as_json:
        print_json(selection.to_json())
    else:
        _print_selection(selection)
    return ExitCode.OK if selection.chosen is not None else ExitCode.INVALID_GRAPH


def _print_selection(selection: PackageSelection) -> None:
    chosen = selection.chosen
    print_line(
        f"{selection.package}, component {selection.component}: "
        f"{chosen.variant if chosen is not None else 'no variant fits this machine'}"
    )
    for verdict in selection.verdicts:
        print_line(f"{'*' if verdict is chosen else ' '} {verdict}")
        if verdict.hint and verdict is not chosen:
            print_line(f"    to fix this: {verdict.hint}")


def _component_json(component: PackageComponent) -> dict[str, Any]:
    return {
        "name": component.name,
        "variants": [{"name": v.name, **v.to_json()} for v in component.variants],
    }


def _rows(component: PackageComponent) -> Iterator[tuple[str, ...]]:
    for variant in component.variants:
        model = variant.ort.model_file if variant.ort is not None else ""
        role, device = _role_and_device(variant)
        yield variant.name, variant.ep, device, role, model


def _role_and_device(variant: PackageVariant) -> tuple[str, str]:
    """Role, and kind of device: variants for CPUs name it in their provider options at most."""
    from ctx_formats.errors import FormatError
    from ort_lite.cli.device_choice import kind_in_options
    from ort_lite.packages.variant_notes import read_notes_of

    try:
        notes = read_notes_of(variant)
    except FormatError:
        return "unreadable", variant.device
    options = notes.provider_options if notes is not None else {}
    return (
        notes.role if notes is not None else "",
        variant.device or kind_in_options(variant.ep, options).lower(),
    )

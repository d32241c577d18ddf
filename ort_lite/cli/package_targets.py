"""`--target`, `--context` and `--row` of `ort-lite package build`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.device_choice import with_device
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.session_choice import full_name, key_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.packaging.build_package import BuildTarget

PLATFORM_DIGITS = 4


def parse_target(text: str) -> BuildTarget:
    """A target such as `openvino`, `openvino:npu.4000,reshape_input=x[1,3]` or `fast=opencl:gpu`.

    Raises:
        UsageError: It is none of these.
    """
    from ort_lite.packaging.build_package import BuildTarget
    from ort_lite.providers.catalog import entries

    head, *pairs = _split_options(text)
    name, sign, place = head.rpartition("=")
    if sign and not name:
        raise click.UsageError(f"--target {text}: expected NAME=EP")
    ep_text, _, device = place.partition(":")
    ep = full_name(ep_text)
    if ep not in entries():
        raise click.UsageError(f"--target {text}: no execution provider '{ep_text}' is installed")
    options = dict(key_value(pair, "--target") for pair in pairs)
    kind, _, number = device.lower().partition(".")
    if kind == "npu" and len(number) == PLATFORM_DIGITS and number.isdigit():
        options |= {"device_type": "NPU", "npu_platform": number}
    elif device:
        try:
            (chosen, *_) = with_device(((ep, options),), device) or ((ep, options),)
        except click.UsageError as exc:
            raise click.UsageError(f"--target {text}: {exc.message}") from exc
        options = dict(chosen[1])
    return BuildTarget(ep=ep, options=options, name=name)


def parse_context(text: str) -> tuple[str, Path]:
    """Variant name and path of `NAME=FILE` or `FILE`; "" for a default name."""
    name, sign, path = text.partition("=")
    if sign and not Path(text).exists():
        return name, Path(path)
    return "", Path(text)


def read_rows(file: Path, rows: Sequence[str]) -> tuple[list[BuildTarget], dict[str, str]]:
    """Targets for rows of a hardware matrix, and why others cannot be compiled for here.

    An NPU's compiler needs no NPU. Any other row needs its device on this machine.

    Raises:
        CommandError: The matrix cannot be read, or has no such row.
    """
    from importlib.metadata import PackageNotFoundError, version

    from ort_lite.cli.hw_project import read_project
    from ort_lite.hw.compile_targets import CPU, OPENVINO, compiler_lacks, target_options
    from ort_lite.packaging.build_package import BuildTarget

    try:
        openvino = version("openvino")
    except PackageNotFoundError:
        openvino = ""
    targets, missing = [], {}
    for row in read_project(file, outdated=True).select(rows):
        options, why_not = target_options(row, openvino)
        if why_not and row.ep != CPU and not (row.ep == OPENVINO and row.device == "NPU"):
            options, why_not = dict(row.options), ""  # the device may be here
        why_not = why_not or compiler_lacks(row, options)
        if why_not:
            missing[row.id] = why_not
        else:
            targets.append(BuildTarget(ep=row.ep, options=options, name=_variant_name(row.id)))
    return targets, missing


def require_targets(missing: dict[str, str], *, skip: bool) -> None:
    """Check that every row can be compiled for here, unless missing ones are skipped.

    Raises:
        CommandError: NO_HARDWARE; one cannot.
    """
    if not missing or skip:
        return
    row, why = next(iter(missing.items()))
    raise CommandError(
        ExitCode.NO_HARDWARE,
        f"row {row} cannot be compiled for here: {why}",
        hint="compile it on such a machine and add the file with --context, or leave it out with "
        "--skip-missing",
    )


def _variant_name(row: str) -> str:
    """A row's id as a folder's name: openvino-cpu[openvino=2026.4.1] has brackets."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in row).strip("-.")


def _split_options(text: str) -> list[str]:
    """Parts between commas that are not inside brackets: reshape_input=x[1,3]."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts

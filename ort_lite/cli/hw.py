"""`ort-lite hw`: commands for hw_matrix.yaml."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_compile import compile_rows
from ort_lite.cli.hw_crossload import crossload
from ort_lite.cli.hw_plan import plan, probe, schema
from ort_lite.cli.hw_project import file_option, next_command, read_project, usage_errors
from ort_lite.cli.hw_report import report
from ort_lite.cli.hw_run import run
from ort_lite.cli.output import count_text, json_option, print_json, print_line
from ort_lite.cli.path_type import PATH

if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDED = {"msgspec": "msgspec", "yaml": "pyyaml"}
"""Module to the distribution that contains it."""


@click.command(short_help="Record runs as evidence in the matrix.")
@click.argument("results", nargs=-1, required=True, type=PATH)
@file_option
@json_option
def record(results: Sequence[Path], *, file: Path, as_json: bool) -> ExitCode:
    """Mark rows as verified by the RESULTS (folders) of `ort-lite hw run`.

    A row must have passed all its suites, at a clean commit, and be unchanged in the matrix.
    Exit code 1 if a result does not qualify; the others are recorded.
    """
    from ort_lite.hw.record import refusal, with_evidence, write_states
    from ort_lite.hw.result import read_results

    project = read_project(file, outdated=True)
    with usage_errors():
        results_by_row = read_results(results)
        unknown = [result.row for result in results_by_row if result.row not in project.rows]
        if unknown:
            raise CommandError(ExitCode.USAGE, f"{file} has no row {', '.join(unknown)}")
        refused = {r.row: refusal(r, project.rows[r.row], project.matrix) for r in results_by_row}
        good = [result for result in results_by_row if not refused[result.row]]
        if good:
            write_states(file, with_evidence(project.matrix, good))
    code = ExitCode.DIFFERENT if len(good) < len(results_by_row) else ExitCode.OK
    if as_json:
        why = {row: reason for row, reason in refused.items() if reason}
        print_json({"verified": [r.row for r in good], "refused": why, "exit_code": int(code)})
        return code
    for row, reason in refused.items():
        print_line(f"{row}: {f'not recorded: {reason}' if reason else 'verified'}")
    return code


@click.command(short_help="Create a matrix for your models.")
@click.argument("models", nargs=-1, required=True, type=PATH)
@file_option
@click.option("--project", default="", help="Name of the project. Default: the folder's.")
@json_option
def init(models: Sequence[Path], *, file: Path, project: str, as_json: bool) -> ExitCode:
    """Create a matrix, to be edited, that runs MODELS on the CPU and on Intel devices."""
    from ctx_formats.atomic_write import write_file
    from ort_lite.hw.read_matrix import read_matrix
    from ort_lite.hw.starter_matrix import installation_source, starter

    for path in models:
        if path.is_dir():
            hint = "name the model files in it"
            raise CommandError(ExitCode.USAGE, f"{path} is a folder", hint=hint)
        _require_model(path)
    folder = file.resolve().parent
    paths = [_path_from(folder, path.resolve()) for path in models]
    text = starter(project or folder.name, paths, installation_source())
    try:
        write_file(file, text.encode(), replace=False)
    except FileExistsError as exc:
        raise CommandError(
            ExitCode.USAGE, f"{file} already exists", hint="choose another file with --file"
        ) from exc
    except OSError as exc:
        raise CommandError(ExitCode.USAGE, f"cannot write {file}: {exc}") from exc
    matrix = read_matrix(file)
    if as_json:
        print_json({"file": str(file), "rows": [row.id for row in matrix.rows]})
    else:
        rows = count_text(len(matrix.rows), "row")
        listed = count_text(len(matrix.models), "model")
        print_line(f"{file}: {rows}, {listed}; next: {next_command('plan', file)}")
    return ExitCode.OK


def _path_from(folder: Path, path: Path) -> Path:
    """`path` relative to `folder`; as it is if it is on another drive."""
    try:
        return Path(os.path.relpath(path, folder))
    except ValueError:
        return path


def _require_model(path: Path) -> None:
    """Read a model, so that a file that is none does not become a row's failure.

    Raises:
        OrtLiteError: It is not an ONNX model.
    """
    from ort_lite.model.loader import load
    from ort_lite.options import SessionOptions

    load(path, SessionOptions()).close()


@click.group(short_help="Plan, run and report a hardware matrix.")
def hw() -> None:
    """Test models across hardware, and contexts across machines, as hw_matrix.yaml plans it."""
    missing = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if missing:
        raise CommandError(
            ExitCode.USAGE,
            f"ort-lite hw needs {' and '.join(missing)}",
            hint='pip install "ort-lite[cli]"',
        )


for command in (plan, probe, schema, run, compile_rows, record, crossload, report, init):
    hw.add_command(command)

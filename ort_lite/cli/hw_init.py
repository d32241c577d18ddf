"""`ort-lite hw init`: creates a matrix for a user's models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_project import file_option
from ort_lite.cli.output import count_text, json_option, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(short_help="Create a matrix for your models.")
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@file_option
@click.option("--project", default="", help="Name of the project. Default: the folder's.")
@json_option
def init(models: Sequence[Path], *, file: Path, project: str, as_json: bool) -> ExitCode:
    """Create a matrix, to be edited, that runs MODELS on the CPU and on Intel devices."""
    from ctx_formats.atomic_write import write_file
    from ort_lite.hw.read_matrix import read_matrix
    from ort_lite.hw.starter import installed_from, starter

    missing = [str(path) for path in models if not path.is_file()]
    if missing:
        raise CommandError(ExitCode.USAGE, f"{missing[0]} does not exist")
    for path in models:
        _require_model(path)
    folder = file.resolve().parent
    paths = [Path(os.path.relpath(path.resolve(), folder)) for path in models]
    text = starter(project or folder.name, paths, installed_from())
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
        print_line(f"{file}: {rows}, {listed}; next: ort-lite hw plan")
    return ExitCode.OK


def _require_model(path: Path) -> None:
    """Read a model, so that a file that is none does not become a row's failure.

    Raises:
        OrtLiteError: It is not an ONNX model.
    """
    from ort_lite.model.loader import load
    from ort_lite.options import SessionOptions

    load(path, SessionOptions()).close()

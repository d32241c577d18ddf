"""`ort-lite hw init`: a matrix for one's own models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_project import file_option
from ort_lite.cli.output import counted, json_option, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(short_help="Write a matrix for your own models.")
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@file_option
@click.option("--project", default="", help="Its name. Default: that of the folder.")
@json_option
def init(models: Sequence[Path], *, file: Path, project: str, as_json: bool) -> ExitCode:
    """Write a matrix that runs MODELS on the CPU and on Intel's devices, to be changed at will."""
    from ctx_formats.atomic_write import write_file
    from ort_lite.hw.read_matrix import read_matrix
    from ort_lite.hw.starter import installed_from, starter

    missing = [str(path) for path in models if not path.is_file()]
    if missing:
        raise CommandError(ExitCode.USAGE, f"{missing[0]} is not there")
    folder = file.resolve().parent
    paths = [Path(os.path.relpath(path.resolve(), folder)) for path in models]
    text = starter(project or folder.name, paths, installed_from())
    try:
        write_file(file, text.encode(), replace=False)
    except FileExistsError as exc:
        raise CommandError(
            ExitCode.USAGE, f"{file} is there already", hint="name another with --file"
        ) from exc
    except OSError as exc:
        raise CommandError(ExitCode.USAGE, f"{file} cannot be written: {exc}") from exc
    matrix = read_matrix(file)
    if as_json:
        print_json({"file": str(file), "rows": [row.id for row in matrix.rows]})
    else:
        print_line(
            f"{file}: {counted(len(matrix.rows), 'row')}, {counted(len(matrix.models), 'model')}; "
            "next: ort-lite hw plan"
        )
    return ExitCode.OK

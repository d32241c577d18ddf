"""`ort-lite convert`: a model from ONNX to ONNX Runtime's ORT format, or back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import json_option, print_json, print_line, size_text
from ort_lite.cli.path_type import NamedPath

if TYPE_CHECKING:
    from ort_lite.model.loader import LoadedModel


@click.command(short_help="Convert a model to the ORT format, or to ONNX.")
@click.argument("model", type=NamedPath(exists=True, dir_okay=False))
@click.option(
    *("-o", "--output"), type=NamedPath(dir_okay=False, path_type=Path), metavar="FILE",
    help="File to write; by default MODEL with the other extension. A name that ends in .ort is "
    "written in the ORT format, any other in ONNX.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def convert(model: str, *, output: Path | None, force: bool, as_json: bool) -> ExitCode:
    """Convert MODEL without optimizing it.

    An .ort file of any version from 1 to 6 becomes version 6 where the output ends in .ort, too.
    External data go into the file. Nothing is written if the format cannot hold the model.
    """
    from ort_lite.model import loader
    from ort_lite.options import SessionOptions

    path = output or Path(model).with_suffix(_other_extension(model))
    _require_new(path, model, force=force)
    with closing(loader.load(model, SessionOptions())) as loaded:
        _write(loaded, path)
    size = path.stat().st_size
    if as_json:
        print_json({"model": model, "output": str(path), "bytes": size})
    else:
        print_line(f"{path}  {size_text(size)}")
    return ExitCode.OK


def _require_new(path: Path, model: str, *, force: bool) -> None:
    """Check that the output may be written.

    Raises:
        CommandError: It exists and is to stay, or is the model.
    """
    if not path.exists():
        return
    if path.samefile(model):
        raise CommandError(ExitCode.USAGE, f"{path} is the model itself; name another output")
    if not force:
        raise CommandError(
            ExitCode.USAGE,
            f"{path} exists already",
            hint="--force replaces it, -o names another file",
        )


def _other_extension(model: str) -> str:
    return ".onnx" if model.lower().endswith(".ort") else ".ort"


def _write(loaded: LoadedModel, path: Path) -> None:
    """Write the model in the format of the path's name.

    Raises:
        Fail: The format cannot hold it, or the file cannot be written.
    """
    from ort_lite.start.ort_conversion import write_onnx_file, write_ort_file

    if path.name.lower().endswith(".ort"):
        write_ort_file(loaded.model, path)
    else:
        write_onnx_file(loaded.model, path)

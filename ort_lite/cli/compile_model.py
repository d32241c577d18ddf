"""`ort-lite compile`: a plain model into a context model, ready to be reloaded."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

import click

from ort_lite.cli.device_lines import compiled_for, devices_of
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import json_option, print_json, print_line, size_text, time_text
from ort_lite.cli.session_choice import open_session, session_choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.planning.explain import SessionReport


@click.command("compile", short_help="Write a model as a context model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path),
    help="The context model to write. Default: MODEL with _ctx before its suffix.",
)
@click.option(
    "--embed/--no-embed", default=False, help="Payloads inside the model instead of beside it."
)
@click.option("--force", is_flag=True, help="Replace an existing context model.")
@session_choice
@json_option
def compile_model(
    model: Path,
    *,
    output: Path | None,
    embed: bool,
    force: bool,
    choice: SessionChoice,
    as_json: bool,
) -> ExitCode:
    """Compile MODEL and write it as a context model.

    An existing file is replaced with --force only, and not before the new one is whole.
    """
    _refuse_compiled(model, choice)
    target = output or model.with_name(f"{model.stem}_ctx.onnx")
    if force and target.exists() and target.samefile(model):
        raise CommandError(ExitCode.USAGE, f"{target} is the model itself; name another output")
    began = perf_counter()
    with _written_to(target, replace=force) as place:
        entries = {
            "ep.context_enable": "1",
            "ep.context_file_path": str(place),
            "ep.context_embed_mode": "1" if embed else "0",
        }
        with open_session(model, choice, entries) as session:
            report = session.explain()
        if not place.exists():
            raise CommandError(
                ExitCode.COMPILE_FAILED,
                f"nothing in {model} was compiled for an execution provider that keeps contexts, "
                f"so {target} was not written",
                hint=f"ort-lite explain {model} says why",
            )
    seconds = perf_counter() - began
    files = [target, *_payload_files(target)]
    if as_json:
        _print_json(model, files, report, seconds)
        return ExitCode.OK
    for path in files:
        print_line(f"{path}  {size_text(path.stat().st_size)}")
    count = len(report.partitions)
    print_line(
        f"{compiled_for(report)}; {count} partition{'s' * (count != 1)}; {time_text(seconds)} "
        "with loading"
    )
    return ExitCode.OK


@contextmanager
def _written_to(target: Path, *, replace: bool) -> Iterator[Path]:
    """Where to write the context model: at `target`, or beside it until all of it is there.

    Raises:
        CommandError: What is there cannot be replaced.
    """
    if not (replace and target.exists()):
        yield target
        return
    try:
        with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            place = Path(folder) / target.name
            yield place
            # The model last: until then the old one has a payload that it refuses.
            for path in sorted(Path(folder).iterdir(), key=place.__eq__):
                path.replace(target.with_name(path.name))
    except OSError as exc:
        raise CommandError(ExitCode.COMPILE_FAILED, f"{target} cannot be replaced: {exc}") from exc


def _refuse_compiled(model: Path, choice: SessionChoice) -> None:
    """A session would load what is compiled already, and have nothing to write."""
    from ort_lite.compiler import refuse_compiled
    from ort_lite.model.loader import load

    with closing(load(model, choice.session_options())) as loaded:
        refuse_compiled(loaded)


def _payload_files(target: Path) -> list[Path]:
    """The files that the context model names, each once."""
    from ort_lite.cli.model_facts import read_facts

    names = dict.fromkeys(context.payload for context in read_facts(target).contexts)
    return [target.parent / name for name in names if name]


def _print_json(model: Path, files: list[Path], report: SessionReport, seconds: float) -> None:
    print_json(
        {
            "model": str(model),
            "output": str(files[0]),
            "files": [{"path": str(p), "bytes": p.stat().st_size} for p in files],
            "nodes": report.node_counts(),
            "devices": devices_of(report),
            "partitions": [
                {"name": p.name, "ep": p.ep, "nodes": len(p.nodes)} for p in report.partitions
            ],
            "seconds": round(seconds, 6),
        }
    )

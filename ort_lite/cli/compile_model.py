"""`ort-lite compile`: a plain model into a context model, ready to be reloaded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import json_option, print_json, print_line, size_text, time_text
from ort_lite.cli.session_choice import open_session, session_choice

if TYPE_CHECKING:
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
@session_choice
@json_option
def compile_model(
    model: Path, *, output: Path | None, embed: bool, choice: SessionChoice, as_json: bool
) -> ExitCode:
    """Compile MODEL and write it as a context model. An existing file is never replaced."""
    _refuse_compiled(model, choice)
    target = output or model.with_name(f"{model.stem}_ctx.onnx")
    entries = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(target),
        "ep.context_embed_mode": "1" if embed else "0",
    }
    began = perf_counter()
    with open_session(model, choice, entries) as session:
        report = session.explain()
    seconds = perf_counter() - began
    if not target.exists():
        raise CommandError(
            ExitCode.COMPILE_FAILED,
            f"nothing in {model} was compiled for an execution provider that keeps contexts, so "
            f"{target} was not written",
            hint=f"ort-lite explain {model} says why",
        )
    files = [target, *_payload_files(target)]
    if as_json:
        _print_json(model, files, report, seconds)
        return ExitCode.OK
    for path in files:
        print_line(f"{path}  {size_text(path.stat().st_size)}")
    counts = ", ".join(f"{ep} {n}" for ep, n in report.node_counts().items())
    print_line(
        f"nodes: {counts}; {len(report.partitions)} partitions; {time_text(seconds)} with loading"
    )
    return ExitCode.OK


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
            "partitions": [
                {"name": p.name, "ep": p.ep, "nodes": len(p.nodes)} for p in report.partitions
            ],
            "seconds": round(seconds, 6),
        }
    )

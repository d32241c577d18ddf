"""`ort-lite hw compile`: compiles models for rows of the matrix that this machine cannot run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_project import file_option, read_project
from ort_lite.cli.output import (
    count_text,
    json_option,
    print_json,
    print_line,
    print_note,
    print_table,
)
from ort_lite.cli.path_type import PATH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.cli.hw_project import Project
    from ort_lite.hw.compile_targets import CompiledModel, FleetResult
    from ort_lite.hw.schema import MatrixModel


@click.command("compile", short_help="Compile models for rows whose device is absent.")
@click.argument("rows", nargs=-1)
@file_option
@click.option(
    *("-o", "--out", "out"), type=PATH, default=Path("hw-fleet"),
    show_default=True, help="Folder of the contexts, fleet.json and fleet.md.",
)  # fmt: skip
@click.option(
    "--model", "names", multiple=True, metavar="NAME",
    help="Only this model of the matrix; repeat it for more.",
)  # fmt: skip
@json_option
def compile_rows(
    rows: Sequence[str], *, file: Path, out: Path, names: Sequence[str], as_json: bool
) -> ExitCode:
    """Compile the matrix's models for ROWS, with what is installed here.

    Only NPU rows of OpenVINO have a compiler that needs no device. The report says of every other
    row where its contexts can be compiled. Exit code 5 if a model was not compiled for a row, 3
    if no row could be compiled for.
    """
    from ort_lite.hw.compile_targets import write_fleet
    from ort_lite.hw.fleet_markdown import fleet_markdown
    from ort_lite.hw.report_file import write_report_file

    project = read_project(file, outdated=True)
    models = _models(project, names)
    result = _compile_all(project, rows, models, out)
    out.mkdir(parents=True, exist_ok=True)
    write_fleet(result, out)
    write_report_file(out / "fleet.md", fleet_markdown(result).encode())
    code = _exit_code(result)
    if as_json:
        import msgspec

        print_json({**msgspec.to_builtins(result), "exit_code": int(code)})
        return code
    _print(result, out)
    return code


def _models(project: Project, names: Sequence[str]) -> dict[str, MatrixModel]:
    unknown = [name for name in names if name not in project.matrix.models]
    if unknown:
        raise CommandError(ExitCode.USAGE, f"{project.file} has no model '{unknown[0]}'")
    chosen = project.matrix.models
    return {name: chosen[name] for name in (names or chosen)}


def _compile_all(
    project: Project, rows: Sequence[str], models: dict[str, MatrixModel], out: Path
) -> FleetResult:
    from importlib.metadata import PackageNotFoundError, version

    from ort_lite.hw.compile_targets import (
        CompiledRow,
        FleetResult,
        compile_row,
        compiler_lacks,
        target_options,
    )
    from ort_lite.hw.run_row import git_state

    try:
        openvino = version("openvino")
    except PackageNotFoundError:
        openvino = ""
    done = []
    first_of: dict[tuple[object, ...], str] = {}
    for row in project.select(rows):
        options, why_not = target_options(row, openvino)
        why_not = why_not or compiler_lacks(row, options)
        if not why_not:
            same = (row.ep, *sorted(options.items()), *sorted(row.config.items()))
            first = first_of.setdefault(same, row.id)
            if first != row.id:
                why_not = f"it loads the contexts of {first}, which differs only in its machine"
        if why_not:
            done.append(CompiledRow(row=row.id, why_not=why_not))
            continue
        done.append(compile_row(row, options, models, project.root, out, print_note))
    commit, _ = git_state(project.root)
    compilers = {"openvino": openvino} if openvino else {}
    return FleetResult(commit=commit, compilers=compilers, rows=tuple(done))


def _exit_code(result: FleetResult) -> ExitCode:
    compiled = [model for row in result.rows for model in row.models]
    if not compiled:
        return ExitCode.NO_HARDWARE
    failed = any(model.problem for model in compiled)
    return ExitCode.COMPILE_FAILED if failed else ExitCode.OK


def _print(result: FleetResult, out: Path) -> None:
    lines = [(row.row, m.model, _outcome(m)) for row in result.rows for m in row.models]
    if lines:
        print_table(("row", "model", "compiled"), lines)
    for row in result.rows:
        if row.why_not:
            print_line(f"{row.row}: not compiled here: {row.why_not}")
    files = sum(len(model.files) for row in result.rows for model in row.models)
    print_line(f"{files} files with their digests are listed in {out / 'fleet.md'}")


def _outcome(model: CompiledModel) -> str:
    if model.problem:
        return f"no: {model.problem}"
    left = sum(count for count, _ in model.left.values())
    nodes, parts = sum(model.taken.values()), model.partitions
    return f"{count_text(nodes, 'node')} in {count_text(parts, 'partition')}, {left} left"

"""`ort-lite hw crossload`: tests which row's contexts load on which row."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.hw_project import file_option, read_project, usage_errors
from ort_lite.cli.hw_run import cache_option, chosen_rows, out_option, row_progress, run_environment
from ort_lite.cli.output import json_option, print_json, print_line, print_note, print_table
from ort_lite.cli.path_type import PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ort_lite.cli.hw_project import Project
    from ort_lite.hw.cross_result import CrossCell, CrossResult
    from ort_lite.hw.rows import ExpandedRow

SIGNS = {
    "optimal": "ok",
    "recompile_advised": "recompile",
    "invalid_graph": "refused",
    "not_implemented": "not its EP",
    "wrong_numbers": "WRONG",
    "crashed": "CRASHED",
    "error": "ERROR",
    "not_built": "none",
}
"""Verdict to its text in a table on a terminal."""


@click.command(short_help="Build contexts on every row and load them on every other.")
@click.argument("rows", nargs=-1)
@file_option
@out_option
@cache_option
@click.option(
    "--contexts", multiple=True, type=PATH, metavar="DIR",
    help="Folder of contexts built elsewhere with --build-only, to load here.",
)  # fmt: skip
@click.option("--build-only", is_flag=True, help="Build contexts without loading any.")
@json_option
def crossload(  # noqa: PLR0913 - one parameter an option
    rows: Sequence[str],
    *,
    file: Path,
    out: Path,
    cache: Path,
    contexts: Sequence[Path],
    build_only: bool,
    as_json: bool,
) -> ExitCode:
    """Load contexts of ROWS on each other, and compare the outcomes with the matrix.

    Default: all rows of `cross_load` that this machine can run. Exit code 1 if an outcome is not
    as expected, 3 if a row's hardware is missing.
    """
    from ort_lite.hw.cross_load import cross_load

    project = read_project(file, outdated=True)
    chosen = cross_rows(project, rows)
    run_env = run_environment(project, out / "crossload", cache, chosen)
    with _report_progress() as show_progress, usage_errors():
        result = cross_load(chosen, run_env, contexts, show_progress, build_only=build_only)
    code = exit_code(result)
    if as_json:
        import msgspec

        print_json({**msgspec.to_builtins(result), "exit_code": int(code)})
        return code
    _print(result, out / "crossload")
    return code


def cross_rows(project: Project, names: Sequence[str]) -> list[ExpandedRow]:
    """The participating rows: those named, or all of cross_load that this machine can run."""
    from ort_lite.hw.facts import read_facts
    from ort_lite.hw.patterns import fits
    from ort_lite.hw.plan import make_plan, required_libraries

    chosen = chosen_rows(project, names, "")
    if names:
        return chosen
    patterns = project.matrix.cross_load.rows
    chosen = [row for row in chosen if any(fits(row.id, pattern) for pattern in patterns)]
    facts = read_facts(libraries=required_libraries(chosen))
    return [one.row for one in make_plan(project.matrix, chosen, facts) if one.is_runnable]


def exit_code(result: CrossResult) -> ExitCode:
    """The worst of cells and rows."""
    if any(not cell.as_expected for cell in result.cells):
        return ExitCode.DIFFERENT
    statuses = {row.status for row in result.rows}
    if statuses & {"environment", "failed"}:
        return ExitCode.COMPILE_FAILED
    return ExitCode.NO_HARDWARE if "wrong_hardware" in statuses else ExitCode.OK


@contextmanager
def _report_progress() -> Iterator[Callable[[str], None]]:
    if sys.stderr.isatty():
        with row_progress("crossload") as show_progress:
            yield show_progress
    else:
        yield print_note


def _print(result: CrossResult, out: Path) -> None:
    names = list(dict.fromkeys(cell.builder for cell in result.cells))
    numbers = {name: str(i) for i, name in enumerate(names, 1)}
    loaders = list(dict.fromkeys(cell.loader for cell in result.cells))
    by_pair: dict[tuple[str, str], list[CrossCell]] = {}
    for cell in result.cells:
        by_pair.setdefault((cell.builder, cell.loader), []).append(cell)
    lines = [
        (numbers[b], b, *(" ".join(map(_sign, by_pair.get((b, to), []))) for to in loaders))
        for b in names
    ]
    if lines:
        print_table(("", "built by", *(f"on {numbers.get(to, to)}" for to in loaders)), lines)
    for row in result.rows:
        for lack in row.lacks:
            print_line(f"{row.row}: {row.status.replace('_', '-')}: {lack}")
    for cell in result.cells:
        if not cell.as_expected:
            expected = f"expected {cell.expected}" if cell.expected else "no expectation"
            message = " ".join(cell.message.split())
            print_line(
                f"{cell.builder} on {cell.loader}: {cell.verdict_text}, {expected}: {message}"
            )
    good = sum(cell.as_expected for cell in result.cells)
    print_line(f"{good} of {len(result.cells)} loads as expected; results are in {out}")


def _sign(cell: CrossCell) -> str:
    reason = f" {cell.reason}" if cell.verdict == "invalid_graph" else ""
    return f"{SIGNS[cell.verdict]}{reason}{'' if cell.as_expected else ' !'}"

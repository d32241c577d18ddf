"""`ort-lite hw run`: runs rows of the matrix on this machine or a fleet."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_project import (
    RESULTS_FOLDER,
    file_option,
    next_command,
    read_project,
    usage_errors,
)
from ort_lite.cli.output import (
    json_option,
    print_json,
    print_line,
    print_note,
    print_table,
    time_text,
)
from ort_lite.cli.path_type import PATH
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ort_lite.cli.hw_project import Project
    from ort_lite.hw.fleet import FleetJob
    from ort_lite.hw.result import RowResult
    from ort_lite.hw.row_setup import RunEnvironment
    from ort_lite.hw.rows import ExpandedRow

CODES = {
    "failed": ExitCode.DIFFERENT,
    "environment": ExitCode.COMPILE_FAILED,
    "lost": ExitCode.VENDOR_CRASHED,
    "wrong_hardware": ExitCode.NO_HARDWARE,
}
"""Exit code by row status; the first status that any row has decides."""

out_option = click.option(
    *("-o", "--out", "out"), type=PATH, default=RESULTS_FOLDER,
    show_default=True, help="Folder of the results.",
)  # fmt: skip
cache_option = click.option(
    "--environments", "cache", type=PATH, default=Path(".hw-environments"),
    show_default=True, help="Folder that caches the rows' environments.",
)  # fmt: skip


@click.command(short_help="Run rows of the matrix, each in its own environment.")
@click.argument("rows", nargs=-1)
@file_option
@out_option
@cache_option
@click.option("--lane", default="", help="Only rows of this lane.")
@click.option(
    "--shard", default="1/1", metavar="I/N", help="Only every Nth row, starting with the Ith."
)
@click.option(
    "--suite",
    "suites",
    multiple=True,
    help="Only this suite. May be repeated. Default: all suites of the row.",
)
@click.option(
    "--scheduler", default="", metavar="dask://HOST:PORT",
    help="Run on the workers of this Dask scheduler.",
)  # fmt: skip
@click.option(
    "--artifacts", default="", metavar="URL",
    help="fsspec URL where a fleet's workers store the rows' files. Default: --out.",
)  # fmt: skip
@json_option
def run(  # noqa: PLR0913 - one parameter an option
    rows: Sequence[str],
    *,
    file: Path,
    out: Path,
    cache: Path,
    lane: str,
    shard: str,
    suites: Sequence[str],
    scheduler: str,
    artifacts: str,
    as_json: bool,
) -> ExitCode:
    """Run ROWS, each in its own environment and its suites in child processes.

    Default: all supported rows. A row whose requirements this machine does not meet gets the
    status wrong-hardware (exit code 3). Writes result.json, junit.xml and log.txt to a folder for
    each row.
    """
    project = read_project(file, outdated=True)
    chosen = shard_of(chosen_rows(project, rows, lane), shard)
    selected = known_suites(project, suites)
    if scheduler:
        from ort_lite.hw.fleet import FleetJob

        job = FleetJob(
            file=str(project.file.resolve()),
            cache=str(cache.resolve()),
            suites=selected,
            artifacts=artifacts or str(out.resolve()),
        )
        running = _on_fleet(project, chosen, scheduler, job, out)
    else:
        running = _run_here(chosen, run_environment(project, out, cache, chosen), selected)
    results = []
    try:
        for result in running:
            results.append(result)
            print_note(one_line(result))
    except Fail as exc:
        raise CommandError(ExitCode.USAGE, exc.message) from exc
    except OSError as exc:
        raise CommandError(ExitCode.USAGE, f"cannot write the results: {exc}") from exc
    show_results(results, out, file, as_json=as_json)
    return exit_code(results)


def _run_here(
    rows: Sequence[ExpandedRow], run_env: RunEnvironment, suites: Sequence[str]
) -> Iterator[RowResult]:
    from ort_lite.hw.run_row import run_row

    for row in rows:
        with row_progress(row.id) as show_progress:
            result = run_row(row, run_env, suites, show_progress)
        yield result


def _on_fleet(
    project: Project, rows: Sequence[ExpandedRow], address: str, job: FleetJob, out: Path
) -> Iterator[RowResult]:
    from ort_lite.hw.fleet import run_on_fleet
    from ort_lite.hw.result import write_result

    with usage_errors():
        for result in run_on_fleet(address, rows, project.matrix, job, print_note):
            folder = out / project.rows[result.row].folder
            folder.mkdir(parents=True, exist_ok=True)
            write_result(result, folder)
            yield result


def chosen_rows(project: Project, names: Sequence[str], lane: str) -> list[ExpandedRow]:
    """The rows to run: an unsupported one only when it is named in full."""
    states = project.matrix.states
    chosen = project.select(names, lane)
    return [r for r in chosen if states[r.id].state != "unsupported" or r.id in names]


def shard_of(rows: Sequence[ExpandedRow], shard: str) -> Sequence[ExpandedRow]:
    """The part of the rows that `I/N` names; the N parts are all of them, and share none."""
    first, _, count = shard.partition("/")
    if not (first.isdecimal() and count.isdecimal() and 1 <= int(first) <= int(count)):
        raise click.UsageError(f"--shard {shard}: expected I/N with I from 1 to N, such as 2/3")
    return rows[int(first) - 1 :: int(count)]


def known_suites(project: Project, names: Sequence[str]) -> tuple[str, ...]:
    """The requested suites; all of the matrix without any."""
    unknown = [name for name in names if name not in project.matrix.suites]
    if unknown:
        names_text = ", ".join(project.matrix.suites)
        raise click.UsageError(f"--suite {unknown[0]}: the matrix has {names_text}")
    return tuple(names or project.matrix.suites)


def run_environment(
    project: Project, out: Path, cache: Path, rows: Sequence[ExpandedRow]
) -> RunEnvironment:
    """This machine, as the environment of the rows' runs."""
    from ort_lite.hw.facts import read_facts
    from ort_lite.hw.plan import required_libraries
    from ort_lite.hw.row_setup import RunEnvironment

    return RunEnvironment(
        matrix=project.matrix,
        root=project.root,
        out=out.resolve(),
        cache=cache.resolve(),
        facts=read_facts(libraries=required_libraries(rows)),
        environ=dict(os.environ),
    )


@contextmanager
def row_progress(row: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what a row is doing and for how long."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(escape(row), total=None)
        yield lambda doing: shown.update(task, description=escape(f"{row}: {doing}"))


def one_line(result: RowResult) -> str:
    """A row's result as one line."""
    from ort_lite.hw.result import counts_text

    summary = counts_text(result.cases) or " ".join("; ".join(result.lacks).split())
    status = result.status.replace("_", "-")
    return f"{result.row}: {status} in {time_text(result.seconds)} ({summary[:300]})"


def show_results(results: Sequence[RowResult], out: Path, file: Path, *, as_json: bool) -> None:
    """Print the results as a table with the failures below it, or as JSON."""
    import msgspec

    from ort_lite.hw.report import causes
    from ort_lite.hw.result import counts_text

    if as_json:
        rows = [msgspec.to_builtins(result) for result in results]
        print_json({"rows": rows, "out": str(out), "exit_code": int(exit_code(results))})
        return
    lines = [
        (r.row, r.status.replace("_", "-"), counts_text(r.cases), time_text(r.seconds))
        for r in results
    ]
    print_table(("row", "status", "cases", "time"), lines, right=("time",))
    for cause in causes(results):
        count = f"{len(cause.places)} times: " if len(cause.places) > 1 else ""
        print_line(f"{count}{cause.message}\n  {cause.where()}")
    print_line(f"results: {out}; next: {next_command('report', file, out)}")


def exit_code(results: Sequence[RowResult]) -> ExitCode:
    """Exit code of the worst row."""
    statuses = {result.status for result in results}
    return next((code for status, code in CODES.items() if status in statuses), ExitCode.OK)

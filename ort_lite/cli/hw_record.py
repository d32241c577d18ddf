"""`ort-lite hw record`: writes the results of runs to the matrix as evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_project import file_option, read_project, usage_errors
from ort_lite.cli.output import json_option, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(short_help="Record runs as evidence in the matrix.")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
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

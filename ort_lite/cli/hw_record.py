"""`ort-lite hw record`: what real runs showed, written into the matrix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_project import file_option, read_project, usage_errors
from ort_lite.cli.output import json_option, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(short_help="Write the evidence of real runs into the matrix.")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@file_option
@json_option
def record(results: Sequence[Path], *, file: Path, as_json: bool) -> ExitCode:
    """Make rows verified by the RESULTS (folders) of `ort-lite hw run`.

    Only a row that passed all its suites, at a commit without other changes, as it stands in the
    matrix now. Exit code 1 if a result is no evidence; the others are written.
    """
    from ort_lite.hw.record import refusal, with_evidence, write_states
    from ort_lite.hw.result import read_results

    project = read_project(file, outdated=True)
    with usage_errors():
        found = read_results(results)
        strangers = [result.row for result in found if result.row not in project.rows]
        if strangers:
            raise CommandError(ExitCode.USAGE, f"{file} has no row {', '.join(strangers)}")
        refused = {r.row: refusal(r, project.rows[r.row], project.matrix) for r in found}
        good = [result for result in found if not refused[result.row]]
        if good:
            write_states(file, with_evidence(project.matrix, good))
    code = ExitCode.DIFFERENT if len(good) < len(found) else ExitCode.OK
    if as_json:
        why = {row: reason for row, reason in refused.items() if reason}
        print_json({"verified": [r.row for r in good], "refused": why, "exit_code": int(code)})
        return code
    for row, reason in refused.items():
        print_line(f"{row}: {f'not recorded: {reason}' if reason else 'verified'}")
    return code

"""`ort-lite explain`: shows where each node runs, and why not elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import json_option, print_json, print_line
from ort_lite.cli.session_choice import open_session, session_choice

if TYPE_CHECKING:
    from ort_lite.cli.session_choice import SessionChoice


@click.command(short_help="Show where each node runs, and why.")
@click.argument("model", type=click.Path(path_type=Path))
@session_choice
@json_option
def explain(model: Path, *, choice: SessionChoice, as_json: bool) -> ExitCode:
    """Load MODEL and show where each node runs, and why not elsewhere."""
    with open_session(model, choice) as session:
        report = session.explain()
    if as_json:
        print_json(report.to_json())
    else:
        print_line(str(report))
    return ExitCode.OK

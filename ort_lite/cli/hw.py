"""`ort-lite hw`: commands for hw_matrix.yaml."""

from __future__ import annotations

from importlib.util import find_spec

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_crossload import crossload
from ort_lite.cli.hw_init import init
from ort_lite.cli.hw_plan import plan, probe, schema
from ort_lite.cli.hw_record import record
from ort_lite.cli.hw_report import report
from ort_lite.cli.hw_run import run

NEEDED = {"msgspec": "msgspec", "yaml": "pyyaml"}
"""Module to the distribution that contains it."""


@click.group(short_help="Plan, run and report a hardware matrix.")
def hw() -> None:
    """Test models across hardware, and contexts across machines, as hw_matrix.yaml plans it."""
    missing = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if missing:
        raise CommandError(
            ExitCode.USAGE,
            f"ort-lite hw needs {' and '.join(missing)}",
            hint="pip install 'ort-lite[cli]'",
        )


for command in (plan, probe, schema, run, record, crossload, report, init):
    hw.add_command(command)

"""`ort-lite hw plan`, `probe` and `schema`: the matrix's rows, this machine, and the format."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ort_lite.cli.device_choice import probe_installed
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.hw_project import file_option, read_project, usage_errors
from ort_lite.cli.output import (
    count_text,
    json_option,
    print_json,
    print_line,
    print_table,
    progress,
    wrapped_lines,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ort_lite.hw.facts import MachineFacts
    from ort_lite.hw.plan import PlannedRow

FORMATS = ("table", "json", "gha", "gitlab", "buildkite", "azure")


@click.command(short_help="Show the rows and whether this machine can run them.")
@click.argument("rows", nargs=-1)
@file_option
@click.option("--lane", default="", help="Only rows of this lane.")
@click.option("--here", is_flag=True, help="Only rows that this machine can run.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True,
    help="Output: a table, JSON, or jobs for a CI.",
)  # fmt: skip
@json_option
def plan(
    rows: Sequence[str], *, file: Path, lane: str, here: bool, form: str, as_json: bool
) -> ExitCode:
    """Check the matrix, expand its axes, and show which rows can run here.

    ROWS are ids, names without brackets, or patterns with `*`. Default: all rows.
    """
    from ort_lite.hw.facts import read_facts
    from ort_lite.hw.plan import FORMATS as CI_FORMATS
    from ort_lite.hw.plan import make_plan, plan_json, required_libraries

    project = read_project(file)
    chosen = project.select(rows, lane)
    facts = read_facts(libraries=required_libraries(chosen))
    planned = make_plan(project.matrix, chosen, facts)
    if here:
        planned = tuple(one for one in planned if one.is_runnable)
    if as_json or form == "json":
        print_json({"project": project.matrix.project, "rows": plan_json(planned)})
    elif form == "table":
        _print_table(planned)
    else:
        with usage_errors():
            print_line(CI_FORMATS[form]([p for p in planned if p.state != "unsupported"]))
    return ExitCode.OK


def _print_table(planned: Sequence[PlannedRow]) -> None:
    """Print the rows; on a terminal the reasons stand below, so that names keep their width."""
    lines = [
        (
            one.row.id,
            one.row.ep.removesuffix("ExecutionProvider"),
            one.row.device,
            one.state,
            "yes" if one.is_runnable else "no",
        )
        for one in planned
    ]
    reasons = ["; ".join(one.why_not) for one in planned]
    if sys.stdout.isatty():
        joined = [(row, f"{ep} {device}", *rest) for row, ep, device, *rest in lines]
        print_table(("row", "provider", "state", "run"), joined)
        _print_reasons(dict(zip((one.row.id for one in planned), reasons, strict=True)))
    else:
        cells = [(*line, reason) for line, reason in zip(lines, reasons, strict=True)]
        print_table(("row", "EP", "device", "state", "here", "why not"), cells)
    count = sum(one.is_runnable for one in planned)
    print_line(f"{count} of {len(planned)} rows can run on this machine")


def _print_reasons(reasons: Mapping[str, str]) -> None:
    """Print each reason once, after the rows that it keeps from running.

    Args:
        reasons: By row; "" for a row that can run.
    """
    rows_of: dict[str, list[str]] = {}
    for row, reason in reasons.items():
        rows_of.setdefault(reason, []).append(row)
    for reason, (first, *others) in rows_of.items():
        if reason:
            more = f" and {count_text(len(others), 'other row')}" if others else ""
            for line in wrapped_lines(f"{first}{more}: ", reason, hanging=4):
                print_line(line)


@click.command(short_help="Show this machine in terms of the matrix's requirements.")
@json_option
def probe(*, as_json: bool) -> ExitCode:
    """Show the properties that rows can require: CPU, chips, device files, drivers, devices."""
    from ort_lite.hw.facts import read_facts
    from ort_lite.hw.requirements import NPU_CHIPS

    with progress("examining this machine"):
        facts = read_facts()
        probes, broken = probe_installed()
    if as_json:
        devices = [
            {
                "execution_provider": ep,
                "device": device.kind,
                "name": device.name,
                **device.identity.to_mapping(),
            }
            for ep, probed in probes.items()
            for device in probed.devices
        ]
        missing = {ep: probed.reason for ep, probed in probes.items() if probed.reason}
        npus = {chip: asdict(NPU_CHIPS[chip]) for chip in facts.pci if chip in NPU_CHIPS}
        more = {"npus": npus, "devices": devices, "missing": {**missing, **broken}}
        print_json({**asdict(facts), **more})
        return ExitCode.OK
    print_table(("requirement", "this machine"), _fact_lines(facts))
    columns = ("provider", "device", "vendor", "architecture", "driver", "sdk")
    lines = [
        (ep.removesuffix("ExecutionProvider"), d.kind, d.identity.vendor, d.identity.architecture,
         d.identity.driver_version, d.identity.sdk_version)
        for ep, probed in probes.items()
        for d in probed.devices
    ]  # fmt: skip
    print_table(columns, lines)
    for ep, reason in {**{e: f.reason for e, f in probes.items()}, **broken}.items():
        if reason:
            print_line(f"{ep}: {reason}")
    return ExitCode.OK


SHOWN_ISA = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_tile", "asimd", "sve")


def _fact_lines(facts: MachineFacts) -> list[tuple[str, str]]:
    nodes = [f"{n.path}{'' if n.usable else f' (join {n.group})'}" for n in facts.device_files]
    return [
        ("os", facts.os),
        ("machine", facts.machine),
        ("CPU", f"{facts.cpu}, {facts.cores} logical cores"),
        ("isa", ", ".join(flag for flag in SHOWN_ISA if flag in facts.isa)),
        ("pci", ", ".join(_chip_lines(facts)) or "none"),
        ("without a driver", ", ".join(facts.undriven) or "none")
        if facts.os == "windows"
        else ("device files", ", ".join(nodes) or "no /dev/dri/renderD*, no /dev/accel"),
        *((f"library {name}", path or "not probed") for name, path in facts.libraries.items()),
        ("python", ", ".join(facts.pythons)),
    ]


def _chip_lines(facts: MachineFacts) -> list[str]:
    from ort_lite.hw.requirements import NPU_CHIPS, chip_text

    pairs = facts.pci.items()
    return [chip_text(c) if c in NPU_CHIPS else f"{c} ({kind})" for c, kind in pairs]


@click.command(short_help="Print the JSON Schema of hw_matrix.yaml.")
def schema() -> ExitCode:
    """Print the JSON Schema of hw_matrix.yaml, for editors."""
    import json

    from ort_lite.hw.read_matrix import json_schema

    print_line(json.dumps(json_schema(), indent=2))
    return ExitCode.OK

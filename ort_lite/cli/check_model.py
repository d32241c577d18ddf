"""`ort-lite check`: tells whether a compiled model may run here, without a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import json_option, print_json, print_line, print_note, progress
from ort_lite.cli.session_choice import session_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.check import NodeVerdict
    from ort_lite.cli.session_choice import SessionChoice


@click.command(short_help="Check whether a compiled model may run here.")
@click.argument("model", type=click.Path(path_type=Path))
@session_choice
@json_option
def check(model: Path, *, choice: SessionChoice, as_json: bool) -> ExitCode:
    """Check whether the compiled MODEL may run here; exit code 4 (INVALID_GRAPH) if not.

    Finds damaged, missing and misplaced payloads before any vendor SDK is imported. No payload is
    passed to an SDK, except in a child process if session.ep_context_probe is set: exit code 7 if
    that process crashes.
    """
    from ort_lite.check import check_compatibility

    with progress(f"checking {model.name}"):
        verdicts = check_compatibility(model, choice.session_options(), choice.providers)
    code = _exit_code(verdicts)
    if as_json:
        nodes = [verdict.to_json() for verdict in verdicts]
        print_json({"model": str(model), "nodes": nodes, "exit_code": int(code)})
        return code
    if not verdicts:
        print_line(f"{model}: no EPContext nodes; this is not a compiled model")
        print_note(f"hint: ort-lite compile {model} compiles it")
    for verdict in verdicts:
        _print(verdict)
    return code


def _exit_code(verdicts: Sequence[NodeVerdict]) -> ExitCode:
    from ctx_formats.errors import Reason

    reasons = [v.reason for v in verdicts if v.reason is not None]
    if not reasons:
        return ExitCode.OK
    if Reason.VENDOR_CRASHED in reasons:
        return ExitCode.VENDOR_CRASHED
    absent = all(reason is Reason.DEVICE_MISSING for reason in reasons)
    return ExitCode.NO_HARDWARE if absent else ExitCode.INVALID_GRAPH


def _print(verdict: NodeVerdict) -> None:
    label = f" ({verdict.reason})" if verdict.reason else ""
    print_line(f"{verdict.node or 'EPContext node'}: {verdict.verdict.name}{label}")
    rows = [
        ("for", verdict.source),
        ("built with", identity_text(verdict.recorded)),
        ("here", identity_text(verdict.present)),
        ("integrity", verdict.integrity),
        ("signed by", verdict.signed_by),
        ("why", verdict.message),
        ("remedy", "" if verdict.hint in verdict.message else verdict.hint),
    ]
    for name, text in rows:
        if text:
            print_line(f"  {name:<11} {text}")


def identity_text(identity: HardwareIdentity | None) -> str:
    """An identity on one line."""
    if identity is None:
        return ""
    sdk = identity.sdk_build or identity.sdk_version
    parts = (identity.device, identity.architecture, identity.driver_version, sdk)
    return ", ".join(part for part in parts if part)

"""Runs one row from its requirements to its result; whatever happens, there is a result."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from ctx_formats.identity import HardwareIdentity
from ort_lite.hw.errors import EnvironmentFailed
from ort_lite.hw.junit import junit_xml
from ort_lite.hw.report_file import write_report_file
from ort_lite.hw.requirements import device_lacks, machine_lacks
from ort_lite.hw.result import LOG_FILE, RowResult, apply_expectations, write_result
from ort_lite.hw.row_setup import prepare_environment
from ort_lite.hw.rows import row_digest
from ort_lite.hw.suites import child_failure, run_suite
from ort_lite.shortages import shortage_as_status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ort_lite.hw.facts import MachineFacts
    from ort_lite.hw.result import CaseResult
    from ort_lite.hw.row_setup import ReadyRow, RunEnvironment
    from ort_lite.hw.rows import ExpandedRow

    Progress = Callable[[str], None]

GIT_TIMEOUT_S = 30


@shortage_as_status("a row cannot be run")
def run_row(
    row: ExpandedRow, run_env: RunEnvironment, suites: Sequence[str], progress: Progress
) -> RowResult:
    """Run a row's suites; its folder then has result.json, junit.xml and log.txt.

    Args:
        row: What is run.
        run_env: Where.
        suites: Of the row's; those it does not have are left out.
        progress: Called with what is going on, one short line.

    Raises:
        Fail: Its results cannot be written.
    """
    began = monotonic()
    result = _new_result(row, run_env, tuple(name for name in row.suites if name in suites))
    lacks = machine_lacks(row, run_env.facts)
    folder = run_env.out / row.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LOG_FILE).unlink(missing_ok=True)  # of an earlier run
    if lacks:
        result = msgspec.structs.replace(result, status="wrong_hardware", lacks=lacks)
    else:
        result = _with_environment(row, run_env, result, progress)
    result = msgspec.structs.replace(result, seconds=monotonic() - began)
    write_result(result, folder)
    write_report_file(folder / "junit.xml", junit_xml([result]))
    return result


def open_row(
    row: ExpandedRow, run_env: RunEnvironment, progress: Progress
) -> tuple[ReadyRow, dict[str, Any]]:
    """A row's environment, and what its own probe found.

    Raises:
        EnvironmentFailed: It cannot be built.
    """
    progress("building its environment")
    ready = prepare_environment(row, run_env)
    progress("looking for its device")
    ended, answer = ready.ask("probe", {}, ready.short_s())
    if not answer:
        return ready, {"ended": ended}
    return replace(ready, keeps_contexts=bool(answer.get("keeps_contexts"))), answer


def row_lacks(row: ExpandedRow, answer: dict[str, Any]) -> tuple[str, ...]:
    """Requirements that a row's own probe reports as missing."""
    if "error" in answer:
        return (answer["error"]["message"],)
    if row.device not in answer["kinds"]:
        kinds = ", ".join(answer["kinds"]) or "nothing"
        return (f"needs a {row.device}, {row.ep} found {kinds}",)
    return device_lacks(row, HardwareIdentity.from_mapping(answer["identity"]))


def _with_environment(
    row: ExpandedRow, run_env: RunEnvironment, result: RowResult, progress: Progress
) -> RowResult:
    try:
        ready, answer = open_row(row, run_env, progress)
    except EnvironmentFailed as exc:
        log = run_env.out / row.folder / LOG_FILE
        log.write_text(f"{exc}\n", encoding="utf-8", errors="replace")
        return msgspec.structs.replace(result, status="environment", lacks=(str(exc),))
    if "ended" in answer:
        case = child_failure("probe", "probe", answer["ended"])
        return msgspec.structs.replace(result, status="failed", cases=(case,))
    lacks = row_lacks(row, answer)
    result = msgspec.structs.replace(
        result, identity=answer.get("identity", {}), packages=answer.get("packages", {})
    )
    if lacks:
        return msgspec.structs.replace(result, status="wrong_hardware", lacks=lacks)
    return _with_cases(ready, result, progress)


def _with_cases(ready: ReadyRow, result: RowResult, progress: Progress) -> RowResult:
    cases: list[CaseResult] = []
    for suite in result.suites:
        progress(suite)
        for case in run_suite(ready, suite):
            cases.append(case)
            progress(f"{suite}: {case.name}")
    expectations = ready.run_env.matrix.expectations
    today = datetime.now(UTC).date()
    judged = apply_expectations(cases, ready.row.id, expectations, today)
    log = ready.log.read_text(encoding="utf-8", errors="replace") if ready.log.exists() else ""
    return msgspec.structs.replace(
        result,
        status="failed" if any(case.is_bad for case in judged) else "passed",
        cases=judged,
        log=log[-8000:],
    )


def _new_result(row: ExpandedRow, run_env: RunEnvironment, suites: tuple[str, ...]) -> RowResult:
    commit, clean = git_state(run_env.root)
    return RowResult(
        row=row.id,
        status="lost",
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit,
        clean=clean,
        row_digest=row_digest(row, run_env.matrix),
        ep=row.ep,
        device=row.device,
        host=_host(run_env.facts),
        suites=suites,
    )


def _host(facts: MachineFacts) -> dict[str, str]:
    return {"os": facts.os, "machine": facts.machine, "cpu": facts.cpu, "cores": str(facts.cores)}


def git_state(root: Path) -> tuple[str, bool]:
    """The commit of a folder and whether its files are those of it; "" outside git."""
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return "", False
    return commit.strip(), _git(root, "status", "--porcelain") == ""


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # no git here
    return done.stdout if done.returncode == 0 else None

"""A report's content: results, the cross-load table, what changed, and the reports before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec

from ort_lite.hw.cross_result import CrossResult, read_cross
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.result import RowResult, read_results
from ort_lite.hw.schema import Ratio
from ort_lite.hw.written_version import require_version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ort_lite.hw.result import Case
    from ort_lite.hw.schema import Matrix

REPORT_VERSION = 1
REPORT_FILE = "report.json"
MAX_HISTORY = 30
LETTERS = {
    "passed": "P",
    "failed": "F",
    "crashed": "C",
    "timeout": "T",
    "skipped": "S",
    "expected_failure": "X",
    "unexpected_pass": "U",
    "expired": "D",
    "wrong_hardware": "W",
    "environment": "E",
    "lost": "L",
    "none": "-",
}
"""One letter for each outcome and status, for whoever does not see colours."""
WORST = ("crashed", "timeout", "failed", "unexpected_pass", "expired", "expected_failure", "passed")
"""Outcomes of cases from worst to best: a suite shows the first that any of its cases has."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One report of the past, in counts."""

    started: str
    commit: str
    rows_passed: int
    rows: int
    loads_as_expected: int = 0
    loads: int = 0


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as in the report before."""

    row: str
    what: str
    before: str
    now: str


class Absent(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the matrix that has no result here, and how sure the matrix is of it."""

    row: str
    state: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that a report shows.

    Attributes:
        absent: Rows of the matrix without a result.
        history: Oldest first; the last is this report.
        changes: Against the report before; empty without one.
    """

    project: str
    results: tuple[RowResult, ...]
    cross: CrossResult | None = None
    absent: tuple[Absent, ...] = ()
    history: tuple[Moment, ...] = ()
    changes: tuple[Change, ...] = ()
    schema_version: int = REPORT_VERSION

    @property
    def suites(self) -> tuple[str, ...]:
        """Every suite of any row, in the order of the row that has most."""
        longest_first = sorted(self.results, key=lambda result: -len(result.suites))
        return tuple(dict.fromkeys(suite for r in longest_first for suite in r.suites))


def make_report(matrix: Matrix, folders: Sequence[Path], previous: Path | None) -> Report:
    """The report on results in folders.

    Args:
        matrix: Of which they are.
        folders: Where `hw run` and `hw crossload` left their results.
        previous: A report.json, or its folder.

    Raises:
        MatrixError: No result in a folder, or a file that is none.
    """
    order = {row: i for i, row in enumerate(matrix.states)}
    results = tuple(sorted(read_results(folders), key=lambda r: order.get(r.row, len(order))))
    cross = read_cross(folders)
    before = read_report(previous) if previous is not None else None
    moment = Moment(
        started=max(result.started for result in results),
        commit=max(results, key=lambda result: result.started).commit,
        rows_passed=sum(result.status == "passed" for result in results),
        rows=len(results),
        loads_as_expected=sum(cell.as_expected for cell in cross.cells) if cross else 0,
        loads=len(cross.cells) if cross else 0,
    )
    ran = {result.row for result in results}
    return Report(
        project=matrix.project,
        results=results,
        cross=cross,
        absent=tuple(
            Absent(row=row, state=told.state)
            for row, told in matrix.states.items()
            if row not in ran
        ),
        history=(*(before.history if before else ()), moment)[-MAX_HISTORY:],
        changes=tuple(changes(before, results, cross)) if before else (),
    )


def read_report(path: Path) -> Report:
    """A report that was written before.

    Raises:
        MatrixError: There is none.
    """
    file = path / REPORT_FILE if path.is_dir() else path
    try:
        content = file.read_bytes()
        require_version(content, REPORT_VERSION)
        return msgspec.json.decode(content, type=Report)
    except (msgspec.MsgspecError, MatrixError, OSError, ValueError, RecursionError) as exc:
        raise MatrixError(f"{file}: no report of ort-lite hw report: {exc}") from exc


def suite_outcome(cases: Sequence[Case]) -> str:
    """The worst outcome of a suite's cases; "none" without any that ran."""
    outcomes = {case.outcome for case in cases}
    return next((outcome for outcome in WORST if outcome in outcomes), "none")


def ratios_text(cases: Sequence[Case]) -> str:
    """`run 1.10, reload 0.05, payload 1.06` of what was measured; "" without measurements."""
    worst: dict[str, float] = {}
    for case in cases:
        for ratio in get_args(Ratio):
            if ratio in case.metrics:
                worst[ratio] = max(case.metrics[ratio], worst.get(ratio, 0.0))
    return ", ".join(f"{ratio} {value:.2f}" for ratio, value in worst.items())


def changes(
    before: Report, results: Sequence[RowResult], cross: CrossResult | None
) -> list[Change]:
    """What differs from the report before, of rows, cases and loads that both have."""
    found = []
    known = {result.row: result for result in before.results}
    for result in results:
        old = known.get(result.row)
        if old is None:
            continue
        if old.status != result.status:
            told = (old.status, result.status)
            found.append(Change(row=result.row, what="row", before=told[0], now=told[1]))
        cases = {case.test: case for case in old.cases}
        found += [
            Change(
                row=result.row,
                what=case.test,
                before=cases[case.test].outcome,
                now=case.outcome,
            )
            for case in result.cases
            if case.test in cases and cases[case.test].outcome != case.outcome
        ]
    return [*found, *_cross_changes(before.cross, cross)]


def _cross_changes(before: CrossResult | None, now: CrossResult | None) -> list[Change]:
    if before is None or now is None:
        return []
    known = {(c.builder, c.loader, c.model): c.found for c in before.cells}
    return [
        Change(
            row=c.loader,
            what=f"loading {c.model} of {c.builder}",
            before=known[c.builder, c.loader, c.model],
            now=c.found,
        )
        for c in now.cells
        if known.get((c.builder, c.loader, c.model), c.found) != c.found
    ]

"""Content of a report: results, their failures by cause, cross-loads, changes and history."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

import msgspec

from ort_lite.hw.cross_result import CrossResult, read_cross
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.report_changes import Change, find_changes
from ort_lite.hw.result import RowResult, read_results, require_version
from ort_lite.hw.schema import Ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ort_lite.hw.cross_result import CrossCell, CrossResult
    from ort_lite.hw.result import CaseResult, RowResult
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
"""One letter for each outcome and status, for readers who do not see colours."""
WORST = ("crashed", "timeout", "failed", "unexpected_pass", "expired", "expected_failure", "passed")
"""Outcomes of cases from worst to best: a suite shows the first that any of its cases has."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one earlier report."""

    started: str
    commit: str
    rows_passed: int
    rows: int
    loads_as_expected: int = 0
    loads: int = 0


class Absent(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the matrix without a result, with its state in the matrix."""

    row: str
    state: str


class MatrixReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a report shows.

    Attributes:
        absent: Rows of the matrix without a result.
        history: Oldest first; the last is this report.
        changes: Against the last report of an earlier run; empty without one.
        logs: Row to the path of its log, relative to the report.
    """

    project: str
    results: tuple[RowResult, ...]
    cross: CrossResult | None = None
    absent: tuple[Absent, ...] = ()
    history: tuple[Moment, ...] = ()
    changes: tuple[Change, ...] = ()
    logs: dict[str, str] = {}
    schema_version: int = REPORT_VERSION

    @property
    def suites(self) -> tuple[str, ...]:
        """Every suite of any row, in the order of the row that has most."""
        longest_first = sorted(self.results, key=lambda result: -len(result.suites))
        return tuple(dict.fromkeys(suite for r in longest_first for suite in r.suites))


def make_report(
    matrix: Matrix,
    folders: Sequence[Path],
    previous: Path | None,
    logs: Mapping[str, str] | None = None,
) -> MatrixReport:
    """The report on results in folders.

    Args:
        matrix: Of which they are.
        folders: Where `hw run` and `hw crossload` left their results.
        previous: A report.json, or its folder. A report of the same run hands on what it had
            been compared with.
        logs: Row to the path of its log, relative to the report.

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
    again = before is not None and before.history[-1:] == (moment,)
    earlier = before.history[: -1 if again else None] if before is not None else ()
    if before is None:
        changed: tuple[Change, ...] = ()
    elif again:
        changed = before.changes
    else:
        changed = find_changes((before.results, results), (before.cross, cross))
    return MatrixReport(
        project=matrix.project,
        results=results,
        cross=cross,
        absent=tuple(
            Absent(row=row, state=state.state)
            for row, state in matrix.states.items()
            if row not in ran
        ),
        history=(*earlier, moment)[-MAX_HISTORY:],
        changes=changed,
        logs=dict(logs or {}),
    )


def read_report(path: Path) -> MatrixReport:
    """Read an earlier report.

    Raises:
        MatrixError: There is none.
    """
    file = path / REPORT_FILE if path.is_dir() else path
    try:
        content = file.read_bytes()
        require_version(content, REPORT_VERSION)
        return msgspec.json.decode(content, type=MatrixReport)
    except (msgspec.MsgspecError, MatrixError, OSError, ValueError, RecursionError) as exc:
        raise MatrixError(f"{file}: not a report of ort-lite hw report: {exc}") from exc


def suite_outcome(cases: Sequence[CaseResult]) -> str:
    """The worst outcome of a suite's cases; "none" without any that ran."""
    outcomes = {case.outcome for case in cases}
    return next((outcome for outcome in WORST if outcome in outcomes), "none")


def ratios_text(cases: Sequence[CaseResult]) -> str:
    """`run 1.10, reload 0.05, payload 1.06` of what was measured; "" without measurements."""
    worst: dict[str, float] = {}
    for case in cases:
        for ratio in get_args(Ratio):
            if ratio in case.metrics:
                worst[ratio] = max(case.metrics[ratio], worst.get(ratio, 0.0))
    return ", ".join(f"{ratio} {value:.2f}" for ratio, value in worst.items())


_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[\\/]\S+|0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?")
"""Parts in which messages of one cause differ: quoted names, paths, numbers."""
MAX_PLACES = 12
MAX_MESSAGE = 1000


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Failures whose messages differ only in names, paths and numbers.

    Attributes:
        message: The first failure's, on one line.
        places: Row and case of each failure; case is "" for a whole row.
    """

    message: str
    places: tuple[tuple[str, str], ...]

    def where(self, quote: str = "") -> str:
        """Rows, in `quote`, with their cases: `cpu (models::a, models::b), npu`."""
        by_row: dict[str, list[str]] = {}
        for row, case in self.places[:MAX_PLACES]:
            by_row.setdefault(row, []).extend([case] if case else [])
        rows = [
            f"{quote}{row}{quote}" + (f" ({', '.join(cases)})" if cases else "")
            for row, cases in by_row.items()
        ]
        more = len(self.places) - MAX_PLACES
        return ", ".join(rows) + (f" and {more} more" if more > 0 else "")


def causes(results: Sequence[RowResult]) -> tuple[Cause, ...]:
    """Why rows and cases did not pass, most frequent cause first."""
    met = [(r.row, "", lack) for r in results for lack in r.lacks]
    met += [
        (r.row, case.test, f"{case.outcome.replace('_', ' ')}: {case.message}")
        for r in results
        for case in r.cases
        if case.is_bad or case.outcome == "expected_failure"
    ]
    return _group(met)


def cross_causes(cross: CrossResult | None) -> tuple[Cause, ...]:
    """Why contexts were not loaded as expected."""
    cells = cross.cells if cross is not None else ()
    return _group(
        [(c.builder, f"on {c.loader}", _cell_text(c)) for c in cells if not c.as_expected]
    )


def _cell_text(cell: CrossCell) -> str:
    return f"{cell.verdict_text}, expected {cell.expected or 'nothing'}: {cell.message}"


def _group(met: list[tuple[str, str, str]]) -> tuple[Cause, ...]:
    first: dict[str, str] = {}
    places: dict[str, list[tuple[str, str]]] = {}
    for row, case, message in met:
        line = " ".join(message.split())[:MAX_MESSAGE]
        key = _VARYING.sub("?", line)
        first.setdefault(key, line)
        places.setdefault(key, []).append((row, case))
    grouped = [Cause(message=first[key], places=tuple(where)) for key, where in places.items()]
    return tuple(sorted(grouped, key=lambda cause: -len(cause.places)))

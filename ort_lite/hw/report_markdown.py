"""A report as Markdown, for a CI's step summary and for the repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.hw.report import LETTERS, causes, cross_causes, ratios_text, suite_outcome
from ort_lite.hw.report_changes import by_kind, counts_of_kinds
from ort_lite.hw.result import counts_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ort_lite.hw.cross_result import CrossCell, CrossResult
    from ort_lite.hw.report import Cause, MatrixReport
    from ort_lite.hw.result import RowResult

CROSS_LETTERS = {
    "optimal": "ok",
    "recompile_advised": "recompile",
    "invalid_graph": "refused",
    "not_implemented": "not its EP",
    "wrong_numbers": "**wrong numbers**",
    "crashed": "**crashed**",
    "error": "**error**",
    "not_built": "not built",
}


MOST_CHANGES = 20
"""Most changes of one kind that are listed."""
LONGEST_LINE = 400
"""Characters of an error that a line shows."""


def markdown(report: MatrixReport) -> str:
    """Render the whole report as Markdown."""
    parts = (_heading, _rows, _failures, _changes, _absent_rows, _cross, _machines)
    return "\n".join(line for part in parts for line in part(report)) + "\n"


def _heading(report: MatrixReport) -> Iterator[str]:
    now = report.history[-1]
    yield f"# Hardware matrix of {report.project}"
    yield ""
    loads = f", {now.loads_as_expected} of {now.loads} loads as expected" if now.loads else ""
    yield f"{now.rows_passed} of {now.rows} rows passed{loads}."
    yield f"Run on {now.started} at commit `{now.commit[:12] or 'none'}`."
    yield ""


def _rows(report: MatrixReport) -> Iterator[str]:
    suites = report.suites
    yield from _table(
        ["row", "status", *suites, "seconds"],
        [
            [f"`{r.row}`", r.status.replace("_", "-"), *(_suite(r, s) for s in suites),
             f"{r.seconds:.0f}"]
            for r in report.results
        ],
    )  # fmt: skip
    used = {suite_outcome(r.of_suite(s)) for r in report.results for s in suites}
    yield ", ".join(f"{LETTERS[o]} {o.replace('_', ' ')}" for o in LETTERS if o in used) + "."
    yield ""


def _suite(result: RowResult, suite: str) -> str:
    cases = result.of_suite(suite)
    summary = "; ".join(filter(None, (counts_text(cases), ratios_text(cases))))
    return f"{LETTERS[suite_outcome(cases)]} {summary}".strip()


def _failures(report: MatrixReport) -> Iterator[str]:
    lines = [_cause(cause) for cause in causes(report.results)]
    if lines:
        yield from ("## What did not pass", "", *lines, "")


def _cause(cause: Cause) -> str:
    count = f"**{len(cause.places)} times** " if len(cause.places) > 1 else ""
    return f"- {count}{_one_line(cause.message)}  \n  {cause.where('`')}"


def _absent_rows(report: MatrixReport) -> Iterator[str]:
    if report.absent:
        rows = ", ".join(f"`{one.row}` ({one.state})" for one in report.absent)
        yield from ("## Without a result here", "", f"{rows}.", "")


def _cross(report: MatrixReport) -> Iterator[str]:
    cross = report.cross
    if cross is None:
        return
    builders = list(dict.fromkeys(cell.builder for cell in cross.cells))
    loaders = list(dict.fromkeys(cell.loader for cell in cross.cells))
    numbers = {name: i for i, name in enumerate(dict.fromkeys([*builders, *loaders]), 1)}
    yield "## Which context loads where"
    yield ""
    yield "Built by a row, loaded by the column's row."
    yield ""
    yield from _table(
        ["built by", *(f"{numbers[name]}" for name in loaders)],
        [
            [f"{numbers[b]} `{b}`", *(_cells(cross, b, loader) for loader in loaders)]
            for b in builders
        ],
    )
    yield from map(_cause, cross_causes(cross))
    for row in cross.rows:
        for lack in row.lacks:
            yield f"- `{row.row}` took no part: {_one_line(lack)}"
    yield ""


def _cells(cross: CrossResult, builder: str, loader: str) -> str:
    cells = [c for c in cross.cells if (c.builder, c.loader) == (builder, loader)]
    return "<br>".join(_cell(cell) for cell in cells) or "-"


def _cell(cell: CrossCell) -> str:
    reason = f" ({cell.reason})" if cell.reason else ""
    return f"{CROSS_LETTERS[cell.verdict]}{reason}{'' if cell.as_expected else ' **!**'}"


def _changes(report: MatrixReport) -> Iterator[str]:
    if len(report.history) < 2:
        return
    yield from (f"## Since the last run: {counts_of_kinds(report.changes)}", "")
    for kind, listed in by_kind(report.changes).items():
        yield f"- **{kind}**"
        yield from (f"  - {_one_line(change.text)}" for change in listed[:MOST_CHANGES])
        if len(listed) > MOST_CHANGES:
            yield f"  - and {len(listed) - MOST_CHANGES} more"
    yield ""


def _machines(report: MatrixReport) -> Iterator[str]:
    shown = [r for r in report.results if r.identity]
    if not shown:
        return
    yield from ("## What it ran on", "")
    yield from _table(
        ["row", "device", "architecture", "driver", "SDK"],
        [
            [f"`{r.row}`", *(_one_line(r.identity.get(key, "")) for key in
                             ("device", "architecture", "driver_version", "sdk_version"))]
            for r in shown
        ],
    )  # fmt: skip


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."

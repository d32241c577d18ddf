"""A report as one HTML page that needs no network: rows by suites, drill-down, loads, history."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from ort_lite.hw.report import LETTERS, causes, cross_causes, ratios_text, suite_outcome
from ort_lite.hw.report_changes import by_kind, counts_of_kinds
from ort_lite.hw.report_style import STYLE
from ort_lite.hw.result import counts_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ort_lite.hw.cross_result import CrossCell, CrossResult
    from ort_lite.hw.report import Cause, MatrixReport
    from ort_lite.hw.result import CaseResult, RowResult

CROSS_LETTERS = {
    "optimal": "O",
    "recompile_advised": "R",
    "invalid_graph": "G",
    "not_implemented": "I",
    "wrong_numbers": "N",
    "crashed": "C",
    "error": "E",
    "not_built": "-",
}
CROSS_TEXTS = {
    "optimal": "loads, optimal",
    "recompile_advised": "loads, recompile advised",
    "invalid_graph": "INVALID_GRAPH, with its reason",
    "not_implemented": "NOT_IMPLEMENTED: another provider's context",
    "wrong_numbers": "loads, wrong numbers",
    "crashed": "crashed or hung",
    "error": "another error",
    "not_built": "not built",
}


MOST_OPEN = 20
"""Most changes of one kind that the page shows without a click."""


def html_page(report: MatrixReport) -> str:
    """Render the whole report as an HTML page."""
    body = [
        *_heading(report),
        *_rows(report),
        *_failures(report),
        *_changes(report),
        *_absent_rows(report),
        *_cross(report.cross),
        *_history(report),
        "<h2>Rows in full</h2>",
        *(line for i, r in enumerate(report.results) for line in _row(i, r, report.logs)),
    ]
    title = f"Hardware matrix of {escape(report.project)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _heading(report: MatrixReport) -> Iterator[str]:
    now = report.history[-1]
    yield f"<h1>Hardware matrix of {escape(report.project)}</h1>"
    loads = f", {now.loads_as_expected} of {now.loads} loads as expected" if now.loads else ""
    yield f"<p><strong>{now.rows_passed} of {now.rows} rows passed{loads}.</strong></p>"
    commit = escape(now.commit[:12] or "none")
    yield f'<p class="quiet">Run on {escape(now.started)} at commit <code>{commit}</code>.</p>'


def _mark(outcome: str, text: str = "") -> str:
    title = outcome.replace("_", " ")
    return (
        f'<span class="mark {outcome}" title="{escape(title)}">{LETTERS[outcome]}</span>'
        f"{f' {escape(text)}' if text else ''}"
    )


def _rows(report: MatrixReport) -> Iterator[str]:
    suites = report.suites
    yield '<h2>Rows by suites</h2><table class="stack"><thead><tr>'
    heads = ("row", "status", *suites, "seconds", *(("log",) if report.logs else ()))
    yield "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr></thead><tbody>"
    for i, result in enumerate(report.results):
        status = _mark(result.status, result.status.replace("_", "-"))
        cells = [
            f'<a href="#row-{i}">{escape(result.row)}</a>',
            status,
            *(_suite(result, suite) for suite in suites),
            f"{result.seconds:.0f}",
        ]
        if report.logs:
            log = report.logs.get(result.row)
            cells.append(_log_link(log, "log") if log else "-")
        pairs = zip(heads, cells, strict=True)
        yield "<tr>" + "".join(f'<td data-of="{escape(h)}">{c}</td>' for h, c in pairs) + "</tr>"
    yield "</tbody></table>"
    yield _legend({key: letter for key, letter in LETTERS.items() if key != "none"}, {})


def _log_link(path: str, text: str) -> str:
    return f'<a href="{escape(quote(path))}">{text}</a>'


def _legend(letters: Mapping[str, str], texts: Mapping[str, str]) -> str:
    parts = [
        f'<span><span class="mark {key}">{letter}</span> '
        f"{escape(texts.get(key, key.replace('_', ' ')))}</span>"
        for key, letter in letters.items()
    ]
    return f'<div class="legend">{"".join(parts)}</div>'


def _suite(result: RowResult, suite: str) -> str:
    cases = result.of_suite(suite)
    summary = "; ".join(filter(None, (counts_text(cases), ratios_text(cases))))
    return _mark(suite_outcome(cases), summary)


def _failures(report: MatrixReport) -> Iterator[str]:
    number = {result.row: i for i, result in enumerate(report.results)}
    lines = [
        _cause(cause, number) for cause in (*causes(report.results), *cross_causes(report.cross))
    ]
    if lines:
        yield f"<h2>What is not as it should be</h2><ul>{''.join(lines)}</ul>"


def _cause(cause: Cause, number: Mapping[str, int]) -> str:
    """A message with every place where it was met, rows as links."""
    count = f"<strong>{len(cause.places)} times</strong> " if len(cause.places) > 1 else ""
    places = (
        f'<li><a href="#row-{number[row]}">{escape(row)}</a> {escape(case)}</li>'
        if row in number
        else f"<li>{escape(row)} {escape(case)}</li>"
        for row, case in cause.places
    )
    shown = "" if len(cause.places) > 1 else " open"
    listed = f"<details{shown}><summary>where</summary><ul>{''.join(places)}</ul></details>"
    return f"<li>{count}{escape(cause.message)}{listed}</li>"


def _absent_rows(report: MatrixReport) -> Iterator[str]:
    if report.absent:
        lines = (f"<li>{escape(one.row)}: {one.state}</li>" for one in report.absent)
        yield f"<details><summary>{len(report.absent)} rows of the matrix have no result here"
        yield f"</summary><ul>{''.join(lines)}</ul></details>"


def _cross(cross: CrossResult | None) -> Iterator[str]:
    if cross is None:
        return
    names = list(dict.fromkeys([c.builder for c in cross.cells] + [c.loader for c in cross.cells]))
    loaders = list(dict.fromkeys(c.loader for c in cross.cells))
    builders = list(dict.fromkeys(c.builder for c in cross.cells))
    number = {name: i for i, name in enumerate(names, 1)}
    yield "<h2>Which context loads where</h2>"
    yield "<p>Built by a row, loaded by the row whose number heads the column.</p>"
    yield '<div class="wide"><table class="cross"><thead><tr><th>built by</th>'
    yield "".join(f'<th title="{escape(to)}">{number[to]}</th>' for to in loaders)
    yield "</tr></thead><tbody>"
    for builder in builders:
        header = f'{number[builder]} <span class="name">{escape(builder)}</span>'
        cells = "".join(f"<td>{_pair(cross, builder, to)}</td>" for to in loaders)
        yield f"<tr><td>{header}</td>{cells}</tr>"
    yield "</tbody></table></div>"
    yield _legend(CROSS_LETTERS, CROSS_TEXTS)
    yield "<p>A frame is around what the matrix does not expect.</p>"
    yield f'<ol class="quiet">{"".join(f"<li>{escape(name)}</li>" for name in number)}</ol>'
    yield f"<details><summary>All {len(cross.cells)} loads in words</summary>"
    yield '<table class="stack words"><thead><tr><th>load</th><th>found</th><th>expected</th>'
    yield "<th>message</th></tr></thead><tbody>"
    yield from (_load_line(cell) for cell in cross.cells)
    yield "</tbody></table></details>"
    for row in cross.rows:
        for lack in row.lacks:
            yield f"<p>{escape(row.row)} took no part: {escape(lack)}</p>"


def _pair(cross: CrossResult, builder: str, loader: str) -> str:
    cells = [c for c in cross.cells if (c.builder, c.loader) == (builder, loader)]
    return " ".join(_cross_mark(cell) for cell in cells) or "-"


def _cross_mark(cell: CrossCell) -> str:
    odd = "" if cell.as_expected else " odd"
    title = escape(f"{cell.model}: {cell.verdict_text}; expected {cell.expected or 'nothing'}")
    reason = f"<small>{escape(cell.reason.replace('_', ' '))}</small>" if cell.reason else ""
    letter = CROSS_LETTERS[cell.verdict]
    return f'<span class="mark {cell.verdict}{odd}" title="{title}">{letter}</span>{reason}'


def _load_line(cell: CrossCell) -> str:
    where = f"{escape(cell.model)} of {escape(cell.builder)} on {escape(cell.loader)}"
    expected = escape(f"{cell.expected or 'nothing'}: {cell.why}")
    result = f"{_cross_mark(cell)} {escape(cell.verdict_text)}"
    return (
        f'<tr><td data-of="load">{where}</td><td data-of="found">{result}</td>'
        f'<td data-of="expected">{expected}</td>'
        f'<td data-of="message">{escape(cell.message)}</td></tr>'
    )


def _changes(report: MatrixReport) -> Iterator[str]:
    if len(report.history) < 2:
        return
    yield f"<h2>Since the last run: {counts_of_kinds(report.changes)}</h2>"
    for kind, listed in by_kind(report.changes).items():
        opened = " open" if kind in ("worse", "better") and len(listed) <= MOST_OPEN else ""
        lines = "".join(f"<li>{escape(change.text)}</li>" for change in listed)
        yield f'<details{opened}><summary><span class="mark {kind}">{len(listed)}</span> {kind}'
        yield f"</summary><ul>{lines}</ul></details>"


def _history(report: MatrixReport) -> Iterator[str]:
    if len(report.history) < 2:
        return
    yield '<h2>Earlier runs</h2><table class="stack"><thead><tr><th>run</th><th>commit</th>'
    yield "<th>rows passed</th><th>loads as expected</th></tr></thead><tbody>"
    for moment in reversed(report.history):
        cells = {
            "run": escape(moment.started),
            "commit": f"<code>{escape(moment.commit[:12])}</code>",
            "rows passed": f"{moment.rows_passed} of {moment.rows}",
            "loads": f"{moment.loads_as_expected} of {moment.loads}",
        }
        yield "<tr>" + "".join(f'<td data-of="{k}">{v}</td>' for k, v in cells.items()) + "</tr>"
    yield "</tbody></table>"


def _row(index: int, result: RowResult, logs: Mapping[str, str]) -> Iterator[str]:
    opened = "" if result.status == "passed" else " open"
    yield f'<details{opened} id="row-{index}"><summary>{_mark(result.status)} '
    yield f"{escape(result.row)}</summary>"
    for lack in result.lacks:
        yield f"<p>{escape(lack)}</p>"
    if result.row in logs:
        yield f"<p>{_log_link(logs[result.row], 'the whole log')}</p>"
    facts = {**result.host, **result.identity, "started": result.started, "commit": result.commit}
    yield _facts(facts)
    for suite in dict.fromkeys([*result.suites, *(case.suite for case in result.cases)]):
        cases = result.of_suite(suite)
        shown = _mark(suite_outcome(cases), f"{suite}: {counts_text(cases) or 'nothing ran'}")
        bad = " open" if any(case.is_bad for case in cases) else ""
        yield f"<details{bad}><summary>{shown}</summary>"
        yield from (line for case in _worst_first(cases) for line in _case(case))
        yield "</details>"
    if result.packages:
        yield f"<details><summary>{len(result.packages)} packages</summary>"
        yield _facts(dict(sorted(result.packages.items()))) + "</details>"
    if result.log:
        yield f"<details><summary>End of the log</summary><pre>{escape(result.log)}</pre></details>"
    yield "</details>"


def _worst_first(cases: Iterable[CaseResult]) -> list[CaseResult]:
    return sorted(cases, key=lambda case: (not case.is_bad, case.outcome != "skipped"))


def _case(case: CaseResult) -> Iterator[str]:
    message = f" {escape(case.message)}" if case.message else ""
    numbers = ", ".join(f"{k} {v:.3g}" for k, v in case.metrics.items())
    placed = ", ".join(f"{ep} {n} nodes" for ep, n in case.placement.items())
    more = "; ".join(filter(None, (numbers, placed, f"{case.seconds:.2f} s")))
    yield f"<p>{_mark(case.outcome)} <code>{escape(case.name)}</code>{message}"
    yield f'<span class="quiet"> {escape(more)}</span></p>'
    if case.details:
        yield f"<pre>{escape(case.details)}</pre>"


def _facts(facts: Mapping[str, str]) -> str:
    pairs = [f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v]
    return f"<dl>{''.join(pairs)}</dl>"

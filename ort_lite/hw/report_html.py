"""A report as one HTML page that needs no network: rows by suites, drill-down, loads, history."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ort_lite.hw.report import LETTERS, causes, cross_causes, ratios_text, suite_outcome
from ort_lite.hw.result import counts_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ort_lite.hw.cross_result import Cell, CrossResult
    from ort_lite.hw.report import Cause, Report
    from ort_lite.hw.result import Case, RowResult

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


def html_page(report: Report) -> str:
    """Render the whole report as an HTML page."""
    body = [
        *_heading(report),
        *_failures(report),
        *_rows(report),
        *_absent(report),
        *_cross(report.cross),
        *_history(report),
        "<h2>Rows in full</h2>",
        *(line for i, result in enumerate(report.results) for line in _row(i, result)),
    ]
    title = f"Hardware matrix of {escape(report.project)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _heading(report: Report) -> Iterator[str]:
    now = report.history[-1]
    yield f"<h1>Hardware matrix of {escape(report.project)}</h1>"
    loads = f", {now.loads_as_expected} of {now.loads} loads as expected" if now.loads else ""
    yield f"<p><strong>{now.rows_passed} of {now.rows} rows passed{loads}.</strong></p>"
    commit = escape(now.commit[:12] or "none")
    yield f'<p class="quiet">Run on {escape(now.started)} at commit <code>{commit}</code>.</p>'


def _mark(outcome: str, text: str = "") -> str:
    told = outcome.replace("_", " ")
    return (
        f'<span class="mark {outcome}" title="{escape(told)}">{LETTERS[outcome]}</span>'
        f"{f' {escape(text)}' if text else ''}"
    )


def _rows(report: Report) -> Iterator[str]:
    suites = report.suites
    yield '<h2>Rows by suites</h2><table class="stack"><thead><tr>'
    heads = ("row", "status", *suites, "seconds")
    yield "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr></thead><tbody>"
    for i, result in enumerate(report.results):
        status = _mark(result.status, result.status.replace("_", "-"))
        cells = [
            f'<a href="#row-{i}">{escape(result.row)}</a>',
            status,
            *(_suite(result, suite) for suite in suites),
            f"{result.seconds:.0f}",
        ]
        pairs = zip(heads, cells, strict=True)
        yield "<tr>" + "".join(f'<td data-of="{escape(h)}">{c}</td>' for h, c in pairs) + "</tr>"
    yield "</tbody></table>"
    yield _legend({key: letter for key, letter in LETTERS.items() if key != "none"}, {})


def _legend(letters: Mapping[str, str], texts: Mapping[str, str]) -> str:
    parts = [
        f'<span><span class="mark {key}">{letter}</span> '
        f"{escape(texts.get(key, key.replace('_', ' ')))}</span>"
        for key, letter in letters.items()
    ]
    return f'<div class="legend">{"".join(parts)}</div>'


def _suite(result: RowResult, suite: str) -> str:
    cases = result.of_suite(suite)
    told = "; ".join(filter(None, (counts_text(cases), ratios_text(cases))))
    return _mark(suite_outcome(cases), told)


def _failures(report: Report) -> Iterator[str]:
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


def _absent(report: Report) -> Iterator[str]:
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
        told = f'{number[builder]} <span class="name">{escape(builder)}</span>'
        cells = "".join(f"<td>{_pair(cross, builder, to)}</td>" for to in loaders)
        yield f"<tr><td>{told}</td>{cells}</tr>"
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


def _cross_mark(cell: Cell) -> str:
    odd = "" if cell.as_expected else " odd"
    title = escape(f"{cell.model}: {cell.found}; expected {cell.expected or 'nothing'}")
    reason = f"<small>{escape(cell.reason.replace('_', ' '))}</small>" if cell.reason else ""
    letter = CROSS_LETTERS[cell.verdict]
    return f'<span class="mark {cell.verdict}{odd}" title="{title}">{letter}</span>{reason}'


def _load_line(cell: Cell) -> str:
    where = f"{escape(cell.model)} of {escape(cell.builder)} on {escape(cell.loader)}"
    expected = escape(f"{cell.expected or 'nothing'}: {cell.why}")
    found = f"{_cross_mark(cell)} {escape(cell.found)}"
    return (
        f'<tr><td data-of="load">{where}</td><td data-of="found">{found}</td>'
        f'<td data-of="expected">{expected}</td>'
        f'<td data-of="message">{escape(cell.message)}</td></tr>'
    )


def _history(report: Report) -> Iterator[str]:
    if len(report.history) < 2:
        return
    yield "<h2>Since the report before</h2>"
    if not report.changes:
        yield "<p>Nothing changed.</p>"
    yield "<ul>"
    for change in report.changes:
        told = f"{change.row}, {change.what}: {change.before} before, {change.now} now"
        yield f"<li>{escape(told)}</li>"
    yield '</ul><table class="stack"><thead><tr><th>run</th><th>commit</th><th>rows passed</th>'
    yield "<th>loads as expected</th></tr></thead><tbody>"
    for moment in reversed(report.history):
        cells = {
            "run": escape(moment.started),
            "commit": f"<code>{escape(moment.commit[:12])}</code>",
            "rows passed": f"{moment.rows_passed} of {moment.rows}",
            "loads": f"{moment.loads_as_expected} of {moment.loads}",
        }
        yield "<tr>" + "".join(f'<td data-of="{k}">{v}</td>' for k, v in cells.items()) + "</tr>"
    yield "</tbody></table>"


def _row(index: int, result: RowResult) -> Iterator[str]:
    opened = "" if result.status == "passed" else " open"
    yield f'<details{opened} id="row-{index}"><summary>{_mark(result.status)} '
    yield f"{escape(result.row)}</summary>"
    for lack in result.lacks:
        yield f"<p>{escape(lack)}</p>"
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


def _worst_first(cases: Iterable[Case]) -> list[Case]:
    return sorted(cases, key=lambda case: (not case.is_bad, case.outcome != "skipped"))


def _case(case: Case) -> Iterator[str]:
    told = f" {escape(case.message)}" if case.message else ""
    numbers = ", ".join(f"{k} {v:.3g}" for k, v in case.metrics.items())
    placed = ", ".join(f"{ep} {n} nodes" for ep, n in case.placement.items())
    more = "; ".join(filter(None, (numbers, placed, f"{case.seconds:.2f} s")))
    yield f"<p>{_mark(case.outcome)} <code>{escape(case.name)}</code>{told}"
    yield f'<span class="quiet"> {escape(more)}</span></p>'
    if case.details:
        yield f"<pre>{escape(case.details)}</pre>"


def _facts(facts: Mapping[str, str]) -> str:
    pairs = [f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v]
    return f"<dl>{''.join(pairs)}</dl>"


STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --paper: #fff; --quiet: #5d6672; --line: #d8dde4;
  --panel: #f5f7f9; --good: #d9f2e0; --goodink: #0d5324; --bad: #fbdcdc; --badink: #8d1212;
  --warn: #fdeecb; --warnink: #6b4700; --none: #eceff3; --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --paper: #14171c; --quiet: #9aa4b2;
  --line: #333a45; --panel: #1c2129; --good: #153d24; --goodink: #a9e5bd; --bad: #521c1f;
  --badink: #ffc2c2; --warn: #4a3708; --warnink: #fbdf9d; --none: #262c35; --link: #7db8f5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1rem; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; margin: .3rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
p { margin: .3rem 0; } .quiet { color: var(--quiet); } a { color: var(--link); }
code, pre { font: .86em/1.45 ui-monospace, monospace; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top;
  padding: .35rem .5rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--quiet); font-size: .86em; white-space: nowrap; }
td:first-child, dd, li { overflow-wrap: anywhere; } td:first-child { min-width: 11rem; }
.stack td:nth-child(2) { white-space: nowrap; }
.words { table-layout: fixed; } .words td, .words td:nth-child(2) { white-space: normal;
  overflow-wrap: anywhere; } .words small { display: none; } .words th:last-child { width: 40%; }
.mark { display: inline-block; min-width: 1.6em; padding: 0 .35em; border-radius: .3em;
  text-align: center; font-weight: 700; background: var(--none); }
.passed, .optimal { background: var(--good); color: var(--goodink); }
.failed, .crashed, .timeout, .unexpected_pass, .expired, .lost, .wrong_numbers, .error, .odd {
  background: var(--bad); color: var(--badink); }
.expected_failure, .wrong_hardware, .environment, .recompile_advised, .not_built {
  background: var(--warn); color: var(--warnink); }
.invalid_graph, .not_implemented { background: var(--none); }
.odd { outline: 2px solid var(--badink); }
.cross td, .cross th { text-align: center; min-width: 2.6rem; }
.cross td:first-child, .cross th:first-child { text-align: left; min-width: 9rem; }
.cross small { display: block; color: var(--quiet); font-size: .72em; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: 0 .7rem;
  background: var(--panel); }
details details { background: var(--paper); } summary { cursor: pointer; padding: .45rem 0; }
pre { overflow-x: auto; white-space: pre-wrap; padding: .5rem; margin: .3rem 0 .7rem;
  background: var(--paper); border: 1px solid var(--line); max-height: 24rem; overflow-y: auto; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .1rem .8rem;
  margin: .4rem 0; } dt { color: var(--quiet); } dd { margin: 0; }
ol { margin: .4rem 0; padding-left: 1.6rem; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem .9rem; margin: .6rem 0; font-size: .88em; }
@media (max-width: 40rem) {
  body { padding: .6rem; font-size: 14px; }
  .stack thead { display: none; } .stack tr { display: block; padding: .5rem 0;
    border-bottom: 1px solid var(--line); }
  .stack td { display: flex; gap: .6rem; border: 0; padding: .12rem 0; }
  .stack td::before { content: attr(data-of); flex: 0 0 6.5rem; color: var(--quiet); }
  .stack td { overflow-wrap: anywhere; } .stack td:nth-child(2) { white-space: normal; }
  .stack td:first-child::before { content: none; } .stack td:first-child { font-weight: 600; }
  .cross small { display: none; } .cross td:first-child, .cross th:first-child { min-width: 0; }
  .cross .name { display: none; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .3rem; }
}
"""

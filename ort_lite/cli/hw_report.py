"""`ort-lite hw report`: writes results as an HTML page, Markdown and JUnit XML."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.hw_project import RESULTS_FOLDER, file_option, read_project, usage_errors
from ort_lite.cli.output import json_option, print_json, print_line, print_note
from ort_lite.cli.path_type import PATH

if TYPE_CHECKING:
    from collections.abc import Sequence

LOGS = "logs"
"""Folder of the report with the rows' logs."""


@click.command(short_help="Report results as HTML, Markdown and JUnit XML.")
@click.argument("results", nargs=-1, type=PATH)
@file_option
@click.option(
    *("-o", "--out", "out"), type=PATH, default=Path("hw-report"),
    show_default=True, help="Folder of the report.",
)  # fmt: skip
@click.option(
    "--previous", type=PATH, metavar="DIR",
    help="Earlier report to compare with. Default: the last report in --out.",
)  # fmt: skip
@click.option(
    "--markdown",
    "print_markdown",
    is_flag=True,
    help="Print the report as Markdown, for example as a CI step summary.",
)
@json_option
def report(
    results: Sequence[Path],
    *,
    file: Path,
    out: Path,
    previous: Path | None,
    print_markdown: bool,
    as_json: bool,
) -> ExitCode:
    """Report the RESULTS (folders; default hw-results) of `hw run` and `hw crossload`.

    Writes index.html (one page that needs no network), report.md, junit.xml, report.json and the
    rows' logs. Compares with the last report. Exit code 1 if a row failed or a load is not as
    expected.
    """
    import msgspec

    from ort_lite.hw.junit import junit_xml
    from ort_lite.hw.report import REPORT_FILE, make_report
    from ort_lite.hw.report_changes import counts_of_kinds
    from ort_lite.hw.report_file import write_report_file
    from ort_lite.hw.report_html import html_page
    from ort_lite.hw.report_markdown import markdown
    from ort_lite.hw.result import logs_of

    project = read_project(file, outdated=True)
    folders = _present(results or [RESULTS_FOLDER])
    previous = previous or _last_report(out)
    with usage_errors():
        logs = logs_of(folders)
        links = {row: f"{LOGS}/{number}.txt" for number, row in enumerate(logs)}
        content = make_report(project.matrix, folders, previous, links)
    text = markdown(content)
    files = {
        "index.html": html_page(content).encode(),
        "report.md": text.encode(),
        "junit.xml": junit_xml(content.results, content.cross),
        REPORT_FILE: msgspec.json.format(msgspec.json.encode(content), indent=1),
    }
    try:
        (out / LOGS).mkdir(parents=True, exist_ok=True)
        for row, link in links.items():
            copyfile(logs[row], out / link)
        for name, data in files.items():
            write_report_file(out / name, data)
    except OSError as exc:
        raise CommandError(ExitCode.USAGE, f"cannot write {out}: {exc}") from exc
    now = content.history[-1]
    good = now.rows_passed == now.rows and now.loads_as_expected == now.loads
    code = ExitCode.OK if good else ExitCode.DIFFERENT
    if as_json:
        changes = [msgspec.to_builtins(change) for change in content.changes]
        counts = msgspec.to_builtins(now)
        summary = {"out": str(out), "files": list(files), "counts": counts, "changes": changes}
        print_json({**summary, "exit_code": int(code)})
        return code
    if print_markdown:
        print_line(text)
    else:
        loads = f", {now.loads_as_expected} of {now.loads} loads as expected" if now.loads else ""
        print_line(f"{now.rows_passed} of {now.rows} rows passed{loads}; see {out / 'index.html'}")
        if len(content.history) > 1:
            print_line(f"since the last run: {counts_of_kinds(content.changes)}")
    return code


def _last_report(out: Path) -> Path | None:
    """The report in `out` that will be replaced; None without one that this version reads."""
    from ort_lite.hw.errors import MatrixError
    from ort_lite.hw.report import REPORT_FILE, read_report

    path = out / REPORT_FILE
    if not path.is_file():
        return None
    try:
        read_report(path)
    except MatrixError as exc:
        print_note(f"note: not compared with the last run: {exc}")
        return None
    return path


def _present(folders: Sequence[Path]) -> Sequence[Path]:
    """The folders of results.

    Raises:
        CommandError: One of them does not exist.
    """
    for folder in folders:
        if not folder.exists():
            raise CommandError(
                ExitCode.USAGE,
                f"{folder} does not exist; expected a folder with a result.json",
                hint="ort-lite hw run writes results",
            )
    return folders

"""A report shows every row, what failed and why, what loads where, and what changed."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from unit.hw.small_matrix import matrix_of

import ort_lite as ort
from ort_lite.cli.app import run_command
from ort_lite.hw.cross_result import CrossCell, CrossResult, CrossRow, write_cross
from ort_lite.hw.report_changes import Change
from ort_lite.hw.result import CaseResult, RowResult, write_result

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<script>alert(1)</script>"
PASSED = CaseResult(suite="all", name="dense fresh", outcome="passed", metrics={"difference": 1e-7})
FAILED = CaseResult(
    suite="all", name="dense fresh", outcome="failed", message=f"off {HOSTILE}", details="\x1b[0m|"
)


def put_results(folder: Path, case: CaseResult, *, loads: bool = True) -> Path:
    """Two rows, one of them on the wrong hardware, and a table of two loads."""
    results = [
        RowResult(
            row="plain",
            status="failed" if case.is_bad else "passed",
            started="2026-11-20T10:00:00+00:00",
            commit="0123456789abcdef" * 2 + "01234567",
            identity={"device": "CPU: A|B", "sdk_version": "1"},
            suites=("all",),
            cases=(case,),
            log=HOSTILE,
        ),
        RowResult(row="npu", status="wrong_hardware", lacks=("needs a NPU",), suites=("all",)),
    ]
    for result in results:
        (folder / result.row).mkdir(parents=True, exist_ok=True)
        write_result(result, folder / result.row)
    cells = (
        CrossCell(builder="plain", loader="plain", model="dense", verdict="optimal",
             expected="optimal", as_expected=True),
        CrossCell(builder="npu", loader="plain", model="dense", verdict="wrong_numbers",
             message="y: 1e-2", expected="optimal"),
    )  # fmt: skip
    if loads:
        rows = (CrossRow(row="plain", status="ready"),)
        write_cross(CrossResult(started="2026", rows=rows, cells=cells), folder)
    return folder


def report(folder: Path, *arguments: object) -> tuple[int, Path]:
    matrix_of(folder)
    out = folder / "report"
    told = ["hw", "report", "-f", folder / "hw_matrix.yaml", "-o", out, *arguments]
    return run_command([str(part) for part in told]), out


class Page(HTMLParser):
    """Tags that are open, what they name, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.sources += [v for k, v in attrs if k in ("src", "href") and v and v[0] != "#"]
        assert tag != "script"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_is_whole_and_needs_no_network(tmp_path: Path) -> None:
    code, out = report(tmp_path, put_results(tmp_path / "results", FAILED))
    assert code == 1
    text = (out / "index.html").read_text("utf-8")
    page = Page(text)
    assert (page.open, page.sources) == ([], [])
    assert "url(" not in text
    told_first = page.words[: page.words.index("Which context loads where")]
    for told in ("failed: off <script>alert(1)</script>whereplain all::dense fresh",
                 "needs a NPUwherenpu", "wrong_numbers, expected optimal: y: 1e-2wherenpu on plain",
                 "mixed[python=3.11,embed=0]: expected"):  # fmt: skip
        assert told in told_first
    for told in ("plain", "wrong-hardware", "needs a NPU", "off <script>", "y: 1e-2"):
        assert told in page.words
    assert re.search(r'class="mark failed"[^>]*>F<', text)
    assert re.search(r'class="mark wrong_numbers odd"[^>]*>N<', text)


def test_the_summary_has_every_row_failure_and_load(tmp_path: Path) -> None:
    code, out = report(tmp_path, put_results(tmp_path / "results", FAILED))
    assert code == 1
    text = (out / "report.md").read_text("utf-8")
    assert "0 of 2 rows passed, 1 of 2 loads as expected." in text
    assert "| `plain` | failed | F 1 failed | 0 |" in text
    assert "- needs a NPU  \n  `npu`\n" in text
    assert f"- failed: off {HOSTILE}  \n  `plain` (all::dense fresh)\n" in text
    assert "`mixed[python=3.11,embed=0]` (expected), `mixed[python=3.10,embed=0]` (exp" in text
    assert "| 1 `plain` | ok |" in text
    assert "| 2 `npu` | **wrong numbers** **!** |" in text
    assert "CPU: A\\|B" in text


def test_a_ci_reads_the_junit_file(tmp_path: Path) -> None:
    _, out = report(tmp_path, put_results(tmp_path / "results", FAILED))
    root = ET.parse(out / "junit.xml").getroot()
    suites = {s.get("name"): (s.get("tests"), s.get("failures"), s.get("errors")) for s in root}
    assert suites == {
        "plain all": ("1", "1", "0"),
        "npu wrong_hardware": ("1", "0", "1"),
        "crossload": ("2", "1", "0"),
    }


def test_what_changed_since_the_report_before_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = report(tmp_path, put_results(tmp_path / "results", FAILED))
    first = first.rename(tmp_path / "first")
    put_results(tmp_path / "results", PASSED)
    capsys.readouterr()
    _, out = report(tmp_path, tmp_path / "results", "--previous", first, "--json")
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["changes"] == [
        {"row": "plain", "what": "row", "before": "failed", "now": "passed"},
        {"row": "plain", "what": "all::dense fresh", "before": "failed", "now": "passed"},
    ]
    page = Page((out / "index.html").read_text("utf-8")).words
    assert "plain, all::dense fresh: failed before, passed now" in page
    assert "0 of 2" in page
    assert "1 of 2" in page


def test_the_page_begins_with_the_grid_then_causes_then_changes(tmp_path: Path) -> None:
    results = put_results(tmp_path / "results", PASSED)
    report(tmp_path, results)
    put_results(tmp_path / "results", FAILED)
    _, out = report(tmp_path, results)
    page = (out / "index.html").read_text("utf-8")
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    assert heads[:3] == [
        "Rows by suites",
        "What is not as it should be",
        "Since the last run: 2 worse",
    ]


def test_a_report_compares_with_the_last_run_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = put_results(tmp_path / "results", FAILED)
    report(tmp_path, results)
    assert "since the last run" not in capsys.readouterr().out
    moved = results / "plain"
    write_result(read_row(moved, status="passed", started="2026-11-21T10:00:00+00:00"), moved)
    added = RowResult(row="late", status="passed", suites=("all",))
    (results / "late").mkdir()
    write_result(added, results / "late")
    (results / "npu" / "result.json").unlink()
    for _ in range(2):  # the second report is of the same run and repeats the comparison
        report(tmp_path, results)
        last = capsys.readouterr().out.splitlines()[-1]
        assert last == "since the last run: 1 better, 1 new, 1 gone"
    text = (tmp_path / "report" / "report.md").read_text("utf-8")
    assert "## Since the last run: 1 better, 1 new, 1 gone" in text
    assert "- **better**\n  - plain: failed before, passed now" in text
    assert "- **new**\n  - late: passed" in text
    assert "- **gone**\n  - npu: wrong-hardware before, not run now" in text


def read_row(folder: Path, **changed: Any) -> RowResult:
    result = msgspec.json.decode((folder / "result.json").read_bytes(), type=RowResult)
    return msgspec.structs.replace(result, **changed)


def test_a_last_report_that_cannot_be_read_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = put_results(tmp_path / "results", PASSED, loads=False)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.json").write_text("{", "utf-8")
    report(tmp_path, results)
    assert "note: not compared with the last run" in capsys.readouterr().err
    assert json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))["changes"] == []


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        ("passed", "crashed", "worse"),
        ("timeout", "passed", "better"),
        ("passed", "expected_failure", "worse"),
        ("failed", "crashed", "different"),
        ("optimal", "invalid_graph(driver_version)", "worse"),
        ("", "failed", "new"),
        ("passed", "", "gone"),
    ],
)
def test_a_change_is_called_what_it_is(before: str, now: str, kind: str) -> None:
    assert Change(row="r", what="row", before=before, now=now).kind == kind


def test_every_row_links_its_log(tmp_path: Path) -> None:
    results = put_results(tmp_path / "results", FAILED)
    (results / "plain" / "log.txt").write_text(f"said {HOSTILE}", "utf-8")
    _, out = report(tmp_path, results)
    text = (out / "index.html").read_text("utf-8")
    (link,) = set(Page(text).sources)
    assert (out / link).read_text("utf-8") == f"said {HOSTILE}"
    assert f'<td data-of="log"><a href="{link}">log</a></td>' in text
    assert '<td data-of="log">-</td>' in text


def test_a_folder_without_results_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(tmp_path, tmp_path / "nothing")[0] == 2
    told = capsys.readouterr().err
    assert "nothing does not exist; expected a folder with a result.json" in told
    assert "ort-lite hw run writes results" in told
    put_results(tmp_path / "results", PASSED, loads=False)
    assert report(tmp_path, tmp_path / "results", "--previous", tmp_path)[0] == 2
    assert "not a report of ort-lite hw report" in capsys.readouterr().err


def test_a_result_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    result = RowResult(row="plain", status="passed", suites=("all",))
    with pytest.raises(
        ort.Fail, match=r"the result .*result\.json cannot be written: .*folder does not exist"
    ):
        write_result(result, tmp_path / "gone")


def test_failures_of_one_cause_are_one_line(tmp_path: Path) -> None:
    """Whatever names, paths and numbers they differ in."""
    cases = tuple(
        CaseResult(suite="all", name=f"m{i} fresh", outcome="failed", message=text)
        for i, text in enumerate(
            [f"no kernel for node 'n{i}' in /tmp/m{i}.onnx after {i} s" for i in range(40)]
            + ["off by 1.5e-2"]
        )
    )
    folder = tmp_path / "results" / "plain"
    folder.mkdir(parents=True)
    write_result(RowResult(row="plain", status="failed", suites=("all",), cases=cases), folder)
    code, out = report(tmp_path, tmp_path / "results")
    assert code == 1
    text = (out / "report.md").read_text("utf-8")
    section = text.partition("## What did not pass")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("- ")]
    assert len(lines) == 2
    assert lines[0].startswith("- **40 times** failed: no kernel for node 'n0'")
    assert "`plain` (all::m0 fresh, all::m1 fresh" in section
    assert "and 28 more" in section
    page = Page((out / "index.html").read_text("utf-8"))
    assert page.words.count("no kernel for node") <= 1 + 40  # the rows' own lists come below
    assert "40 times" in page.words

"""A row runs in its own environment and children, and whatever they do, there is a result."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import yaml

from ort_lite.cli.hw_run import shard_of
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.rows import expand

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.hw.conftest import OddProject

    Make = Callable[..., OddProject]

RIGHT = "odd[do=right]"


def test_a_right_row_passes_fresh_and_reloaded(odd: Make) -> None:
    project = odd()
    code, rows = project.run(RIGHT, "cpu")
    assert code == 0
    assert {case["name"]: case["outcome"] for case in rows[RIGHT]["cases"]} == {
        "dense fresh": "passed",
        "dense reloaded": "passed",
    }
    assert rows[RIGHT]["cases"][0]["placement"] == {"OddExecutionProvider": 3}
    assert rows[RIGHT]["identity"]["device"] == "CPU: odd"
    assert "numpy" in rows[RIGHT]["packages"]
    assert rows["cpu"]["cases"][1]["outcome"] == "skipped"
    assert rows["cpu"]["cases"][1]["message"] == "CPUExecutionProvider keeps no contexts"
    left = {path.name for path in (project.results / "odd-do-right").iterdir()}
    assert {"result.json", "junit.xml", "log.txt", "contexts"} <= left


def test_a_model_whose_output_is_off_fails(odd: Make) -> None:
    code, rows = odd().run("odd[do=lie]")
    assert code == 1
    case = rows["odd[do=lie]"]["cases"][0]
    assert case["outcome"] == "failed"
    assert case["message"].startswith("off by y: 1.0e-02 of its largest value")
    assert case["metrics"]["difference"] == pytest.approx(0.01, rel=1e-3)


def test_an_oracle_in_a_file_is_compared_with(odd: Make) -> None:
    project = odd(oracle="expected.npz")
    np.savez(project.root / "expected.npz", y=np.zeros((1, 2), np.float32))
    code, rows = project.run("cpu")
    assert code == 1
    assert "off by y" in rows["cpu"]["cases"][0]["message"]


def test_a_child_that_crashes_or_hangs_ends_alone_and_the_report_says_so(odd: Make) -> None:
    project = odd(timeout_s=8)
    broken = [f"odd[do={what}]" for what in ("crash", "hang", "lie", "wrong-pin")]
    code, rows = project.run(*broken, RIGHT)
    assert code == 1
    outcomes = {row: r["cases"][0]["outcome"] for row, r in rows.items() if r["cases"]}
    assert outcomes == {
        "odd[do=crash]": "crashed",
        "odd[do=hang]": "timeout",
        "odd[do=lie]": "failed",
        RIGHT: "passed",
    }
    code, told = project.call("report", project.results, "--out", project.root / "report")
    assert (code, told["counts"]["rows_passed"], told["counts"]["rows"]) == (1, 1, 5)
    page = (project.root / "report/index.html").read_text("utf-8")
    for row, result in rows.items():
        messages = [*result["lacks"], *(case["message"] for case in result["cases"])]
        assert all(escape(message) in page for message in [row, *messages])
    crash, hang = rows["odd[do=crash]"]["cases"][0], rows["odd[do=hang]"]["cases"][0]
    assert "killed by SIGSEGV" in crash["message"]
    assert hang["message"] == "no answer within 8 s; killed"
    tests = ET.parse(project.results / "odd-do-hang" / "junit.xml").getroot()
    assert [f.get("type") for f in tests.iter("failure")] == ["timeout"]


def test_a_wrong_pin_gives_no_environment_and_nothing_incomplete(odd: Make) -> None:
    project = odd()
    code, rows = project.run("odd[do=wrong-pin]")
    assert code == 5
    (lack,) = rows["odd[do=wrong-pin]"]["lacks"]
    assert lack.startswith("pip install ./no-such-package-here: ended with status 1")
    log = project.results / "odd-do-wrong-pin" / "log.txt"
    assert log.read_text("utf-8") == f"{lack}\n"
    folders = [path for path in project.environments.iterdir() if path.is_dir()]
    assert all((path / "complete.json").is_file() for path in folders if path.name != "eps")


def test_another_version_than_required_is_wrong_hardware(odd: Make) -> None:
    project = odd()
    code, rows = project.run("odd[do=other-pin]")
    assert code == 3
    assert rows["odd[do=other-pin]"]["status"] == "wrong_hardware"
    assert rows["odd[do=other-pin]"]["lacks"] == ["needs SDK ==2.0, found '1.0'"]
    error = ET.parse(project.results / "odd-do-other-pin" / "junit.xml").find(".//error")
    assert error is not None
    assert error.get("message") == "needs SDK ==2.0, found '1.0'"


def test_a_folder_that_cannot_be_written_is_told(odd: Make) -> None:
    project = odd()
    project.results.write_text("a file")
    code, told = project.call("run", "cpu", "--out", project.results / "deeper")
    assert (code, "cannot write the results" in told["error"]["message"]) == (2, True)


def test_an_unsupported_row_runs_only_when_it_is_named(odd: Make) -> None:
    _, rows = odd().run("odd[do=o*")
    assert list(rows) == ["odd[do=other]"]


def test_shards_are_all_rows_and_share_none(odd: Make) -> None:
    matrix = read_matrix(odd().file)
    rows = list(expand(matrix).values())
    parts = [shard_of(rows, f"{i}/3") for i in (1, 2, 3)]
    assert [len(part) for part in parts] == [4, 4, 3]
    assert {row.id for part in parts for row in part} == set(matrix.states)


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "a/b"])
def test_a_shard_that_is_none_is_a_usage_error(shard: str, odd: Make) -> None:
    code, told = odd().call("run", "--shard", shard)
    assert code == 2
    assert f"--shard {shard}: expected I/N" in told["error"]["message"]


EXPECT = """\
expectations:
  - {{ row: "odd[do=lie]", test: "models::dense*", reason: it lies, until: {until} }}
"""


def test_a_known_failure_is_expected_until_its_day(odd: Make) -> None:
    project = odd(expectations=EXPECT.format(until="2999-01-01"))
    code, rows = project.run("odd[do=lie]")
    assert code == 0
    assert {case["outcome"] for case in rows["odd[do=lie]"]["cases"]} == {"expected_failure"}
    project.write(expectations=EXPECT.format(until="2020-01-01"))
    code, rows = project.run("odd[do=lie]")
    assert code == 1
    assert rows["odd[do=lie]"]["cases"][0]["outcome"] == "expired"
    assert rows["odd[do=lie]"]["cases"][0]["message"].startswith(
        "expectation expired on 2020-01-01"
    )


def test_an_unexpected_pass_fails(odd: Make) -> None:
    text = EXPECT.replace("odd[do=lie]", "odd[*").format(until="2999-01-01")
    code, rows = odd(expectations=text).run(RIGHT)
    assert code == 1
    case = rows[RIGHT]["cases"][0]
    assert (case["outcome"], case["message"]) == (
        "unexpected_pass",
        "unexpected pass (expected failure: it lies); remove the expectation",
    )


def test_a_run_at_a_clean_commit_verifies_its_row(odd: Make) -> None:
    project = odd()
    (project.root / ".gitignore").write_text("/results/\n")
    project.git("init", "-q")
    project.git("add", "-A")
    project.git("commit", "-qm", "all")
    project.run(RIGHT, "odd[do=lie]")
    code, told = project.call("record", project.results)
    assert (code, told["verified"]) == (1, [RIGHT])
    assert told["refused"] == {"odd[do=lie]": "the row is failed"}
    state = read_matrix(project.root / "hw_matrix.yaml").states[RIGHT]
    assert state.evidence is not None
    assert state.evidence.commit == project.git("rev-parse", "HEAD").strip()
    assert state.evidence.suites == {"models": "2 passed"}
    lines = yaml.safe_load((project.root / "hw_matrix.yaml").read_text("utf-8"))["states"]
    assert lines["cpu"] == {"state": "expected"}


def test_a_changed_threshold_takes_the_evidence_back_until_the_row_has_run_again(
    odd: Make,
) -> None:
    project = odd(bench={"payload": 1000})
    (project.root / ".gitignore").write_text("/results/\n")
    project.git("init", "-q")

    def run_and_record() -> dict[str, Any]:
        project.git("add", "-A")
        project.git("commit", "-qm", "all")
        project.run(RIGHT)
        return project.call("record", project.results)[1]

    assert run_and_record()["verified"] == [RIGHT]
    assert project.call("plan")[0] == 0
    recorded = project.file.read_text("utf-8")
    project.file.write_text(recorded.replace("payload: 1000", "payload: 999"), "utf-8")
    code, told = project.call("plan")
    assert (code, "what its suites ask, has changed" in told["error"]["message"]) == (2, True)
    code, told = project.call("record", project.results)
    assert told["refused"] == {RIGHT: "the row, or what its suites ask, has changed since it ran"}
    assert run_and_record()["verified"] == [RIGHT]
    assert project.call("plan")[0] == 0


def test_a_platform_s_own_limit_holds_in_place_of_the_suite_s(odd: Make) -> None:
    project = odd(bench={"payload": 1.001})
    rows = ("odd[do=other]", "odd[do=roomy]")
    _, results = project.run(*rows, "--suite", "bench")
    strict, roomy = (results[row]["cases"][0] for row in rows)
    assert (strict["outcome"], roomy["outcome"]) == ("failed", "passed")
    assert 1.001 < roomy["metrics"]["payload"] < 1000
    assert strict["message"] == f"payload {strict['metrics']['payload']:.2f} exceeds 1.001"
    assert roomy["message"] == "payload has the row's own limit 1000: contexts are padded"


def test_a_run_among_uncommitted_files_is_no_evidence(odd: Make) -> None:
    project = odd()
    project.git("init", "-q")
    project.git("add", "dense.onnx")
    project.git("commit", "-qm", "some")
    project.run(RIGHT)
    before = (project.root / "hw_matrix.yaml").read_bytes()
    code, told = project.call("record", project.results)
    assert (code, told["refused"]) == (1, {RIGHT: "files differed from the commit when it ran"})
    assert (project.root / "hw_matrix.yaml").read_bytes() == before


def test_a_result_that_is_none_is_a_usage_error(odd: Make) -> None:
    project = odd()
    code, told = project.call("record", project.root)
    assert (code, "no result.json" in told["error"]["message"]) == (2, True)
    (project.root / "result.json").write_text(json.dumps({"row": 3}))
    code, told = project.call("record", project.root)
    assert (code, "not a result of ort-lite hw run" in told["error"]["message"]) == (2, True)

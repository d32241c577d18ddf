"""Severities, verbosity and tags of sessions and runs, as onnxruntime has them."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx.parser
import pytest

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 18]>\n'
    "g (float[2] x) => (float[2] z) { y = Relu(x) z = Exp(y) }"
).SerializeToString()
FEED = {"x": np.ones(2, np.float32)}
CPU = ["CPUExecutionProvider"]


@pytest.fixture(autouse=True)
def _default_level() -> Iterator[None]:
    logger = logging.getLogger("ort_lite")
    level = logger.level
    yield
    logger.setLevel(level)


def session(severity: int = -1, verbosity: int = 0, logid: str = "") -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level, options.log_verbosity_level = severity, verbosity
    options.logid = logid
    return ort.InferenceSession(MODEL, options, providers=CPU)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_session_tells_nothing_below_a_warning_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session().run(None, FEED)
    assert messages(caplog) == []


def test_a_verbose_session_tells_of_its_runs(caplog: pytest.LogCaptureFixture) -> None:
    made = session(0, logid="mine")
    caplog.clear()
    made.run(None, FEED)
    assert messages(caplog) == [f"[mine] the run of {made!r} has ended"]
    assert caplog.records[0].name == "ort_lite.run_forms"


def test_more_verbosity_tells_of_each_node(caplog: pytest.LogCaptureFixture) -> None:
    session(0, 1).run(None, FEED)
    assert [text for text in messages(caplog) if text.startswith("Computing")] == [
        "Computing kernel: Relu",
        "Computing kernel: Exp",
    ]


def test_a_run_has_a_severity_and_a_tag_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    made = session(2, logid="mine")
    run_options = ort.RunOptions()
    made.run(None, FEED, run_options)
    assert messages(caplog) == []
    run_options.log_severity_level, run_options.logid = 0, "first"
    made.run(None, FEED, run_options)
    assert messages(caplog) == [f"[mine:first] the run of {made!r} has ended"]


def test_a_session_s_severity_ends_with_it(caplog: pytest.LogCaptureFixture) -> None:
    session(0).run(None, FEED)
    caplog.clear()
    session().run(None, FEED)
    assert messages(caplog) == []


def test_the_default_severity_holds_where_options_say_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ort.set_default_logger_severity(0)
    ort.set_default_logger_verbosity(1)
    session(2).run(None, FEED)
    assert messages(caplog) == []
    session().run(None, FEED)
    assert "Computing kernel: Relu" in messages(caplog)
    caplog.clear()
    ort.set_default_logger_severity(3)
    ort.set_default_logger_verbosity(1)
    session().run(None, FEED)
    assert messages(caplog) == []


@pytest.mark.parametrize("severity", [-2, 5])
def test_an_unknown_severity_is_refused(severity: int) -> None:
    with pytest.raises(ort.InvalidArgument, match=f"log severity is {severity}, expected 0"):
        ort.set_default_logger_severity(severity)
    with pytest.raises(ort.InvalidArgument, match=f"log severity is {severity}, expected 0"):
        session(severity)
    run_options = ort.RunOptions()
    run_options.log_severity_level = severity
    with pytest.raises(ort.InvalidArgument, match=f"log severity is {severity}, expected 0"):
        session().run(None, FEED, run_options)


def test_a_negative_verbosity_is_refused() -> None:
    with pytest.raises(ort.InvalidArgument, match="log verbosity is -1"):
        ort.set_default_logger_verbosity(-1)
    with pytest.raises(ort.InvalidArgument, match="log verbosity is -1"):
        session(0, -1)


PROGRAM = f"""
import numpy as np, ort_lite as ort
options = ort.SessionOptions()
options.log_severity_level, options.logid = {{severity}}, "mine"
model = bytes.fromhex("{MODEL.hex()}")
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
session.run(None, {{{{"x": np.ones(2, np.float32)}}}})
"""


@pytest.mark.parametrize("severity", [0, 2])
def test_without_handlers_lines_go_to_stderr_in_onnxruntime_s_form(severity: int) -> None:
    command = [sys.executable, "-c", PROGRAM.format(severity=severity)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    if severity == 2:
        assert done.stderr == ""
        return
    line = done.stderr.splitlines()[-1]
    pattern = (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[V:ort_lite:mine, run_forms\.py:\d+ "
        r"_run_watched\] the run of <InferenceSession"
    )
    assert re.match(pattern, line), line

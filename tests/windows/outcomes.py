"""A pytest plug-in: one line of JSON for each step of a test, written at once.

What a process that hangs or dies has done so far can then be read from outside.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PATH = "ORT_LITE_OUTCOMES"
LONGEST = 1500


def pytest_runtest_logstart(nodeid: str) -> None:
    _write({"test": nodeid, "outcome": "started"})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        text = "" if report.outcome == "passed" else str(report.longrepr)[-LONGEST:]
        _write({"test": report.nodeid, "outcome": report.outcome, "text": text})


def pytest_runtest_logfinish(nodeid: str) -> None:
    _write({"test": nodeid, "outcome": "finished"})


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        text = str(report.longrepr)[-LONGEST:]
        _write({"test": report.nodeid, "outcome": "failed", "text": text})


def _write(line: dict[str, str]) -> None:
    with Path(os.environ[PATH]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")

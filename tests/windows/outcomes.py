"""A pytest plug-in that appends a line of JSON to a file's log for each step of its tests.

A process that hangs, dies or is stopped leaves behind what it has done. `record.py` reads the
logs; the plan, a file that the environment variable `PLAN` names, says which tests are done.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

PLAN = "ORT_LITE_TEST_PLAN"
LONGEST = 1500
"""Characters of a failure that are kept: its end."""


class Outcomes:
    """The logs of one pytest process.

    Attributes:
        logs: Path of the log by test file.
        done: Tests that have an outcome from an earlier process.
        left: How many tests are left to run, by test file.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self.logs: dict[str, str] = plan["logs"]
        self.done = frozenset(plan["done"])
        self.left: Counter[str] = Counter()
        self.seconds = 0.0

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out the tests that are done. `--deselect` compares prefixes: it leaves out more."""
        left_out = [item for item in items if item.nodeid in self.done]
        items[:] = [item for item in items if item.nodeid not in self.done]
        config.hook.pytest_deselected(items=left_out)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Record how many tests each file has."""
        self.left.update(_file_of(item.nodeid) for item in session.items)
        done = Counter(map(_file_of, self.done))
        for file in self.logs:
            self._write(file, outcome="collected", tests=self.left[file] + done[file])
            if not self.left[file]:
                self._write(file, outcome="complete")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported, or that is skipped as a whole."""
        if report.outcome != "passed":
            self._write(
                report.nodeid, test=report.nodeid, outcome=report.outcome, text=_text(report)
            )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self.seconds = 0.0
        self._write(nodeid, test=nodeid, outcome="started")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Its set-up, call or teardown has ended."""
        self.seconds += report.duration
        if report.when == "call" or report.outcome != "passed":
            text = "" if report.outcome == "passed" else _text(report)
            self._write(report.nodeid, test=report.nodeid, outcome=report.outcome, text=text)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """It has ended, and perhaps its file with it."""
        self._write(nodeid, test=nodeid, outcome="finished", seconds=round(self.seconds, 3))
        file = _file_of(nodeid)
        self.left[file] -= 1
        if not self.left[file]:
            self._write(nodeid, outcome="complete")

    def _write(self, nodeid: str, **line: object) -> None:
        with Path(self.logs[_file_of(nodeid)]).open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Write logs if a plan asks for them."""
    if PLAN in os.environ:
        plan = json.loads(Path(os.environ[PLAN]).read_text(encoding="utf-8"))
        config.pluginmanager.register(Outcomes(plan))


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _text(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The end of a failure, or the reason of a skip, whose text is a triple with path and line."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(report.longrepr)[-LONGEST:]

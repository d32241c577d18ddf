"""What came of running rows: plain values that become JSON, JUnit XML and reports."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import msgspec

from ort_lite.hw.errors import MatrixError
from ort_lite.hw.written_version import require_version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Outcome = Literal[
    "passed",
    "failed",
    "crashed",
    "timeout",
    "skipped",
    "expected_failure",
    "unexpected_pass",
    "expired",
]
Status = Literal["passed", "failed", "wrong_hardware", "environment", "lost"]
RESULT_VERSION = 1
BAD: frozenset[str] = frozenset({"failed", "crashed", "timeout", "unexpected_pass", "expired"})
"""Outcomes that fail a row."""
RESULT_FILE = "result.json"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One promise, model or measurement of a row.

    Attributes:
        message: One line; "" where nothing is to be said.
        details: The end of the child's log, or a traceback.
        metrics: Numbers: ratios, differences, seconds (names end in _s).
        placement: Execution provider to its number of nodes.
    """

    suite: str
    name: str
    outcome: Outcome
    seconds: float = 0
    message: str = ""
    details: str = ""
    metrics: dict[str, float] = {}
    placement: dict[str, int] = {}

    @property
    def test(self) -> str:
        """As expectations name it: `suite::name`."""
        return f"{self.suite}::{self.name}"

    @property
    def is_bad(self) -> bool:
        """Whether it fails its row."""
        return self.outcome in BAD


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was to run.

    Attributes:
        lacks: What the machine lacks (wrong_hardware), or why there is no environment.
        started: UTC, ISO 8601.
        commit: Of the project; "" outside git.
        clean: Whether its files were those of the commit.
        identity: Device, driver and SDK, as the EP reported them.
        packages: Distributions in the row's environment.
        suites: Those that were asked for, with or without cases.
    """

    row: str
    status: Status
    lacks: tuple[str, ...] = ()
    started: str = ""
    seconds: float = 0
    commit: str = ""
    clean: bool = False
    row_digest: str = ""
    ep: str = ""
    device: str = ""
    host: dict[str, str] = {}
    identity: dict[str, str] = {}
    packages: dict[str, str] = {}
    suites: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    log: str = ""
    schema_version: int = RESULT_VERSION

    def of_suite(self, suite: str) -> tuple[Case, ...]:
        """The cases of one suite."""
        return tuple(case for case in self.cases if case.suite == suite)


def counts_text(cases: Iterable[Case]) -> str:
    """`84 passed, 1 expected failure`."""
    counts = Counter(case.outcome for case in cases)
    return ", ".join(f"{n} {outcome.replace('_', ' ')}" for outcome, n in counts.items())


def write_result(result: RowResult, folder: Path) -> None:
    """Write result.json."""
    text = msgspec.json.format(msgspec.json.encode(result), indent=1)
    (folder / RESULT_FILE).write_bytes(text)


def read_results(folders: Iterable[Path]) -> tuple[RowResult, ...]:
    """Every result.json in the folders or anywhere under them, by row; a later one wins.

    Raises:
        MatrixError: There is none in all of them, or one that is no result.
    """
    found: dict[str, RowResult] = {}
    folders = list(folders)
    for path in [path for folder in folders for path in sorted(folder.rglob(RESULT_FILE))]:
        try:
            content = path.read_bytes()
            require_version(content, RESULT_VERSION)
            result = msgspec.json.decode(content, type=RowResult)
        except (msgspec.MsgspecError, MatrixError, OSError, ValueError, RecursionError) as exc:
            raise MatrixError(f"{path}: no result of ort-lite hw run: {exc}") from exc
        known = found.get(result.row)
        if known is None or known.started <= result.started:
            found[result.row] = result
    if not found:
        told = ", ".join(map(str, folders))
        raise MatrixError(f"{told}: there is no {RESULT_FILE} in it")
    return tuple(found.values())

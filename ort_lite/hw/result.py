"""Results of rows and their cases: judged by expectations, read from and written to JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import msgspec

from ort_lite.hw.errors import MatrixError
from ort_lite.hw.patterns import fits
from ort_lite.hw.report_file import write_report_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date
    from pathlib import Path

    from ort_lite.hw.schema import Expectation


class _Versioned(msgspec.Struct, frozen=True):
    schema_version: int


def require_version(content: bytes, known: int) -> None:
    """Find a file of another version before its fields are looked at.

    Raises:
        MatrixError: It is; says which version is read here.
        msgspec.MsgspecError: It has no `schema_version`.
    """
    version = msgspec.json.decode(content, type=_Versioned).schema_version
    if version != known:
        raise MatrixError(
            f"schema_version is {version}, and this ort_lite reads {known}; read it with the "
            "ort_lite that wrote it, or run the rows again"
        )


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
LOG_FILE = "log.txt"


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One test, model or measurement of a row.

    Attributes:
        message: One line, or "".
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
        """Name in expectations: `suite::name`."""
        return f"{self.suite}::{self.name}"

    @property
    def is_bad(self) -> bool:
        """Whether it fails its row."""
        return self.outcome in BAD


class RowResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a row that was asked to run.

    Attributes:
        lacks: What the machine lacks (wrong_hardware), or why there is no environment.
        started: UTC, ISO 8601.
        commit: Of the project; "" outside git.
        clean: Whether its files were those of the commit.
        identity: Device, driver and SDK, as the EP reported them.
        packages: Distributions in the row's environment.
        suites: Suites that were asked for, with or without cases.
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
    cases: tuple[CaseResult, ...] = ()
    log: str = ""
    schema_version: int = RESULT_VERSION

    def of_suite(self, suite: str) -> tuple[CaseResult, ...]:
        """The row's cases of one suite."""
        return tuple(case for case in self.cases if case.suite == suite)


def counts_text(cases: Iterable[CaseResult]) -> str:
    """Counts of outcomes as text: `84 passed, 1 expected failure`."""
    counts = Counter(case.outcome for case in cases)
    return ", ".join(f"{n} {outcome.replace('_', ' ')}" for outcome, n in counts.items())


def write_result(result: RowResult, folder: Path) -> None:
    """Write a row's result.json to its folder.

    Raises:
        Fail: It cannot be written; an earlier result.json stays.
    """
    text = msgspec.json.format(msgspec.json.encode(result), indent=1)
    write_report_file(folder / RESULT_FILE, text)


def read_results(folders: Iterable[Path]) -> tuple[RowResult, ...]:
    """Results from every result.json in or under the folders; the latest of each row wins.

    Raises:
        MatrixError: There is none at all, or one is not a result.
    """
    folders = list(folders)
    latest = _latest_results(folders)
    if not latest:
        searched = ", ".join(map(str, folders))
        raise MatrixError(f"no {RESULT_FILE} in {searched}; ort-lite hw run writes results")
    return tuple(result for result, _ in latest.values())


def logs_of(folders: Iterable[Path]) -> dict[str, Path]:
    """Row to its log file, for the rows of `read_results` that left one.

    Raises:
        MatrixError: A result.json is not a result.
    """
    logs = {row: path.with_name(LOG_FILE) for row, (_, path) in _latest_results(folders).items()}
    return {row: path for row, path in logs.items() if path.is_file()}


def _latest_results(folders: Iterable[Path]) -> dict[str, tuple[RowResult, Path]]:
    """Row to its latest result and the file that it is from."""
    latest: dict[str, tuple[RowResult, Path]] = {}
    for path in [path for folder in folders for path in sorted(folder.rglob(RESULT_FILE))]:
        try:
            content = path.read_bytes()
            require_version(content, RESULT_VERSION)
            result = msgspec.json.decode(content, type=RowResult)
        except (msgspec.MsgspecError, MatrixError, OSError, ValueError, RecursionError) as exc:
            raise MatrixError(f"{path}: not a result of ort-lite hw run: {exc}") from exc
        earlier = latest.get(result.row)
        if earlier is None or earlier[0].started <= result.started:
            latest[result.row] = result, path
    return latest


def apply_expectations(
    cases: Iterable[CaseResult], row: str, expectations: Iterable[Expectation], today: date
) -> tuple[CaseResult, ...]:
    """The cases of a row, each judged by the first expectation that matches it."""
    own = [one for one in expectations if fits(row, one.row)]
    return tuple(_apply_first(case, own, today) for case in cases)


def _apply_first(case: CaseResult, expectations: list[Expectation], today: date) -> CaseResult:
    expected = next((one for one in expectations if fits(case.test, one.test)), None)
    if expected is None or case.outcome == "skipped":
        return case
    reason = " ".join(filter(None, (expected.reason, expected.issue)))
    if not case.is_bad:
        message = f"unexpected pass (expected failure: {reason}); remove the expectation"
        return msgspec.structs.replace(case, outcome="unexpected_pass", message=message)
    text = f"expected: {reason}; {case.message}"
    if today > expected.until:
        message = f"expectation expired on {expected.until}; {text}"
        return msgspec.structs.replace(case, outcome="expired", message=message)
    return msgspec.structs.replace(case, outcome="expected_failure", message=text)

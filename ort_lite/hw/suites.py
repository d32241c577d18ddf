"""Runs the suites of a row; each yields cases, whatever its child processes do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from ort_lite.hw.errors import EnvironmentFailed
from ort_lite.hw.result import CaseResult
from ort_lite.hw.row_setup import model_job
from ort_lite.hw.schema import BenchSuite, ConformanceSuite, ModelsSuite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ort_lite.hw.child_process import ChildExit
    from ort_lite.hw.result import Outcome
    from ort_lite.hw.row_setup import ReadyRow

_PYTEST_OUTCOMES: dict[str, Outcome] = {
    "failure": "failed",
    "error": "failed",
    "skipped": "skipped",
}
"""Elements of pytest's JUnit file."""
CONFORMANCE_FILE = "test_conformance_of_row.py"
CONFORMANCE = '''"""Written by `ort-lite hw run`: the promises of {ep} in the row {row}."""

from ort_lite.providers import catalog
from ort_lite.testing import EpConformance


class TestRow(EpConformance):
    provider_options = {options!r}
    sdk_modules = {sdk_modules!r}

    @property
    def factory(self):
        return catalog.entries()[{ep!r}].load()
'''


def run_suite(ready: ReadyRow, name: str) -> Iterator[CaseResult]:
    """Run a suite and yield its cases as they finish."""
    suite = ready.run_env.matrix.suites[name]
    timeout_s = suite.timeout_s or ready.run_env.matrix.defaults.timeout_s
    if isinstance(suite, ConformanceSuite):
        yield from _conformance_cases(ready, name, timeout_s)
        return
    for model in suite.models:
        try:
            job = model_job(ready, model)
        except EnvironmentFailed as exc:
            yield CaseResult(suite=name, name=model, outcome="failed", message=str(exc))
            continue
        if isinstance(suite, ModelsSuite):
            yield from _model_cases(ready, name, job, timeout_s)
        else:
            yield _bench_case(ready, name, job, suite, timeout_s)


def _conformance_cases(ready: ReadyRow, suite: str, timeout_s: float) -> Iterator[CaseResult]:
    row, folder = ready.row, ready.folder / "conformance"
    folder.mkdir(exist_ok=True)
    text = CONFORMANCE.format(
        ep=row.ep, row=row.id, options=dict(row.options), sdk_modules=row.sdk_modules
    )
    (folder / CONFORMANCE_FILE).write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", "utf-8")
    report = folder / "pytest.xml"
    report.unlink(missing_ok=True)
    command = ["-m", "ort_lite.hw.child_main", "pytest", "-q", "--tb=short",
               f"--rootdir={folder}", "-c", str(folder / "pytest.ini"), f"--junitxml={report}",
               str(folder / CONFORMANCE_FILE)]  # fmt: skip
    ended = ready.call(command, timeout_s)
    cases = tuple(_pytest_cases(suite, report)) if report.is_file() else ()
    yield from cases
    reported = ended.code == 0 or (ended.code == 1 and any(case.is_bad for case in cases))
    if not reported or not cases:
        yield child_failure(suite, "pytest", ended)


def _pytest_cases(suite: str, report: Path) -> Iterator[CaseResult]:
    """The cases of a JUnit file that pytest wrote."""
    for element in ET.parse(report).iter("testcase"):
        problem = next((part for part in element if part.tag in _PYTEST_OUTCOMES), None)
        outcome: Outcome = "passed" if problem is None else _PYTEST_OUTCOMES[problem.tag]
        yield CaseResult(
            suite=suite,
            name=element.get("name", ""),
            outcome=outcome,
            seconds=float(element.get("time", "0")),
            message=_first_line(problem.get("message", "")) if problem is not None else "",
            details=(problem.text or "")[-4000:]
            if problem is not None and outcome == "failed"
            else "",
        )


def _model_cases(
    ready: ReadyRow, suite: str, job: dict[str, Any], timeout_s: float
) -> Iterator[CaseResult]:
    name = job["name"]
    ended, answer = ready.ask("model", job, timeout_s)
    if "fresh" not in answer:
        yield _unanswered_case(suite, f"{name} fresh", ended, answer)
        return
    keys = ("load_s", "first_run_s", "reload_s")
    seconds: dict[str, float] = {key: answer[key] for key in keys if key in answer}
    yield _comparison_case(
        suite, f"{name} fresh", answer["fresh"], ended, answer["placement"], seconds
    )
    if not ready.keeps_contexts:
        why = f"{ready.row.ep} keeps no contexts"
        yield CaseResult(suite=suite, name=f"{name} reloaded", outcome="skipped", message=why)
    elif "reloaded" in answer:
        size = {"context_bytes": float(answer["context_bytes"])}
        yield _comparison_case(suite, f"{name} reloaded", answer["reloaded"], ended, {}, size)


def _comparison_case(
    suite: str,
    name: str,
    differences: list[Mapping[str, Any]],
    ended: ChildExit,
    placement: dict[str, int],
    metrics: dict[str, float],
) -> CaseResult:
    far = [d for d in differences if not d["within"]]
    texts = [
        d["problem"] or f"{d['output']}: {d['relative']:.1e} of its largest value" for d in far
    ]
    return CaseResult(
        suite=suite,
        name=name,
        outcome="failed" if far or not differences else "passed",
        seconds=ended.seconds,
        message=f"off by {'; '.join(texts)}"
        if far
        else ""
        if differences
        else "no output to compare",
        metrics={**metrics, "difference": max((d["relative"] for d in differences), default=0.0)},
        placement=placement,
    )


def _bench_case(
    ready: ReadyRow, suite: str, job: dict[str, Any], bench: BenchSuite, timeout_s: float
) -> CaseResult:
    name = job["name"]
    settings = {"against": bench.against, "runs": bench.runs}
    ended, answer = ready.ask("bench", {**job, **settings}, timeout_s)
    if "metrics" not in answer:
        return _unanswered_case(suite, name, ended, answer)
    metrics: dict[str, float] = answer["metrics"]
    own = {key: limit.at_most for key, limit in ready.row.limits.items()}
    limits = {key: limit for key, limit in (bench.thresholds | own).items() if key in metrics}
    over = [f"{k} {metrics[k]:.2f} exceeds {v:g}" for k, v in limits.items() if metrics[k] > v]
    own_limits = [
        f"{k} has the row's own limit {v.at_most:g}: {v.why}" for k, v in ready.row.limits.items()
    ]
    return CaseResult(
        suite=suite,
        name=name,
        outcome="failed" if over else "passed",
        seconds=ended.seconds,
        message="; ".join([*over, *own_limits]),
        metrics=metrics,
        placement=answer["placement"],
    )


def _unanswered_case(
    suite: str, name: str, ended: ChildExit, answer: Mapping[str, Any]
) -> CaseResult:
    error = answer.get("error")
    if error is None:
        return child_failure(suite, name, ended)
    status = f"{error['status']}: " if error["status"] else ""
    message = _first_line(f"{status}{error['message']}")
    return CaseResult(
        suite=suite, name=name, outcome="failed", seconds=ended.seconds, message=message
    )


def child_failure(suite: str, name: str, ended: ChildExit) -> CaseResult:
    """The case of a child that ended without an answer."""
    return CaseResult(
        suite=suite,
        name=name,
        outcome="timeout" if ended.timed_out else "crashed" if ended.has_crashed else "failed",
        seconds=ended.seconds,
        message=ended.describe(),
        details=ended.tail,
    )


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:500]

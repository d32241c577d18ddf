"""Runs the node cases of onnx 1.2 to 1.18 on the CPU EP and explains every miss.

`python tests/parity/check_old_cases.py [RELEASE ...] [--wheels FOLDER] [--json FILE]`. Downloads
the releases' wheels (200 MB in all) where FOLDER does not hold them. Ends with 1 if a case fails
that onnx.reference or onnxruntime passes and that no reason explains.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

import onnx  # noqa: E402 - the paths come first
import onnx.reference  # noqa: E402 - the paths come first
import onnxruntime  # noqa: E402 - the paths come first
from parity.old_case_reasons import reason_for  # noqa: E402 - as above
from parity.old_cases import (  # noqa: E402 - as above
    WHEELS,
    OldCase,
    cases_of,
    difference,
    wheel_of,
)

import ort_lite as ort  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Engine = Callable[[OldCase], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Miss:
    """A case that the CPU EP does not pass."""

    case: OldCase
    what: str
    passed_by: tuple[str, ...]
    reason: str

    @property
    def is_ours(self) -> bool:
        """Whether another engine passes it and nothing explains why ours does not."""
        return bool(self.passed_by) and not self.reason


def main() -> int:
    """Run, print, and say whether anything is ours to mend."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help=", ".join(WHEELS))
    parser.add_argument("--wheels", type=Path, default=HERE.parents[1] / ".models" / "onnx_wheels")
    parser.add_argument("--json", type=Path, help="write every miss to this file")
    asked = parser.parse_args()
    releases = asked.releases or list(WHEELS)
    wheels = [(release, wheel_of(release, asked.wheels)) for release in releases]
    count, misses = check(wheels)
    report(count, misses)
    if asked.json is not None:
        asked.json.write_text(json.dumps(as_json(count, misses), indent=1), "utf-8")
    return 1 if any(miss.is_ours for miss in misses) else 0


def check(wheels: Sequence[tuple[str, Path]]) -> tuple[int, list[Miss]]:
    """How many cases there are, and those that the CPU EP does not pass."""
    count, misses = 0, []
    passing: dict[str, str] = {}  # the last release whose form of a case passes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the peers have to say of their own code
        for case in cases_of(wheels):
            count += 1
            what = verdict(ours, case)
            if not what:
                passing[case.name] = case.release
            else:
                peers = {"onnx.reference": reference, "onnxruntime": peer}
                passed = tuple(name for name, run in peers.items() if not verdict(run, case))
                misses.append(Miss(case, what, passed, reason_for(case.name)))
    return count, [_with_later(miss, passing.get(miss.case.name, "")) for miss in misses]


def _with_later(miss: Miss, release: str) -> Miss:
    """The miss, explained by a later form of the case that passes, where there is one."""
    releases = list(WHEELS)
    if miss.reason or not release or releases.index(release) < releases.index(miss.case.release):
        return miss
    return replace(miss, reason=f"onnx mended the case; as {release} has it, it passes")


def verdict(engine: Engine, case: OldCase) -> str:
    """What is wrong with an engine's results for a case; "" if nothing."""
    if case.unreadable:
        return case.unreadable
    try:
        found = engine(case)
    except Exception as exc:  # noqa: BLE001 - three engines, each with errors of its own
        return f"{type(exc).__name__}: {exc}"[:300]
    if len(found) < len(case.outputs):
        return f"{len(found)} outputs"
    pairs = zip(found, case.outputs, strict=False)
    return next(filter(None, (difference(a, b) for a, b in pairs)), "")


def ours(case: OldCase) -> Sequence[Any]:
    """The CPU EP."""
    with ort.InferenceSession(case.model, providers=["CPUExecutionProvider"]) as session:
        return session.run(None, _feed([info.name for info in session.get_inputs()], case))


def peer(case: OldCase) -> Sequence[Any]:
    """onnxruntime's CPU execution provider."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(None, _feed([i.name for i in session.get_inputs()], case))
    return results


def reference(case: OldCase) -> Sequence[Any]:
    """onnx.reference of the onnx that is installed."""
    model = onnx.load_model_from_string(case.model)
    names = [info.name for info in model.graph.input]
    results: list[Any] = onnx.reference.ReferenceEvaluator(model).run(None, _feed(names, case))  # type: ignore[assignment] # as it returns one
    return results


def _feed(names: Sequence[str], case: OldCase) -> dict[str, Any]:
    feed = dict(zip(names, case.inputs, strict=False))
    return {
        name: value.astype(object) if _is_text(value) else value for name, value in feed.items()
    }


def _is_text(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "US"


def report(count: int, misses: Sequence[Miss]) -> None:
    """A line for each miss, then the totals."""
    for miss in misses:
        case = miss.case
        passed = f"; passes in {', '.join(miss.passed_by)}" if miss.passed_by else ""
        why = miss.reason or ("UNEXPLAINED" if miss.passed_by else "no engine passes it")
        sys.stdout.write(f"{case.release:7} {case.name}: {miss.what}{passed}\n        {why}\n")
    groups = Counter(
        miss.reason.split(";")[0] or ("unexplained" if miss.passed_by else "no engine passes it")
        for miss in misses
    )
    sys.stdout.write(f"\n{count} cases, {count - len(misses)} pass\n")
    for reason, number in groups.most_common():
        sys.stdout.write(f"{number:5} {reason}\n")


def as_json(count: int, misses: Sequence[Miss]) -> dict[str, Any]:
    """What `--json` writes."""
    rows = [
        {
            "release": miss.case.release,
            "case": miss.case.name,
            "what": miss.what,
            "passed_by": list(miss.passed_by),
            "reason": miss.reason,
        }
        for miss in misses
    ]
    return {"schema_version": 1, "cases": count, "passed": count - len(misses), "misses": rows}


if __name__ == "__main__":
    sys.exit(main())

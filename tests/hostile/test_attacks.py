"""Every hostile case of tests/hostile/attacks ends in the right answer or in an error of ours."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hostile.side_by_side import (
    ATTACKS,
    ENGINES,
    KINDS,
    SECONDS,
    Worker,
    cases_of,
    groups,
    results,
    summary,
)

GROUPS = groups()
OURS = tuple(name for name in ENGINES if name != "onnxruntime")
ON_ONE = ("surroundings",)
"""Groups whose cases each need a process; the script tries them on the other engines, too."""
PAIRS = [
    (engine, group)
    for group in GROUPS
    for engine in (("openvino",) if group in ON_ONE else OURS)
    if any(engine in case.engines for case in cases_of(group))
]
KNOWN = {
    ("openvino", "feeds: NaN and infinity"): "wrong",  # docs/robustness.md
}
"""Outcomes that are wrong and documented."""
NEEDS_FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")


@pytest.mark.parametrize(("engine", "group"), PAIRS)
def test_it_ends_in_the_right_answer_or_a_typed_error(engine: str, group: str) -> None:
    found = results([engine], f"{group}: ")
    bad = {
        name: by[engine]
        for name, by in found.items()
        if by[engine][0] not in ("right", "typed") and KNOWN.get((engine, name)) != by[engine][0]
    }
    assert not bad
    assert found


def test_crashes_and_wrong_answers_would_be_seen() -> None:
    """onnxruntime's outcomes of two cases, which a process of its own survives."""
    found = results(["onnxruntime"], "bindings: input pointer 0")
    assert found["bindings: input pointer 0"]["onnxruntime"][0] == "crash"
    found |= results(["onnxruntime"], "feeds: big-endian")
    assert found["feeds: big-endian"]["onnxruntime"][0] == "wrong"
    rows = summary(found, ["onnxruntime"])
    assert [row[:2] for row in rows] == [["bindings", "onnxruntime"], ["feeds", "onnxruntime"]]
    assert rows[0][2 + KINDS.index("crash")] == "1"


@NEEDS_FORKS
@pytest.mark.parametrize("when", ["at once", "at its exit"])
def test_a_crash_in_a_process_of_its_own_is_seen(when: str, tmp_path: Path) -> None:
    """The case after it has a process all the same."""
    worker = Worker("cpu", str(tmp_path))
    for _ in range(2):
        kind, detail = worker.outcome(ATTACKS[f"ends: {when}"])
        assert kind == "crash"
        assert detail.startswith(f"exit status {-signal.SIGABRT}")
        assert worker.outcome(ATTACKS["surroundings: PATH is empty"]) == ("right", "")
    worker.close()


@NEEDS_FORKS
@pytest.mark.parametrize("when", ["never", "never at its exit"])
def test_a_hang_in_a_process_of_its_own_is_seen(when: str, tmp_path: Path) -> None:
    worker = Worker("cpu", str(tmp_path), seconds=3)
    assert worker.outcome(ATTACKS[f"ends: {when}"])[0] == "hang"
    worker.seconds = SECONDS
    assert worker.outcome(ATTACKS["surroundings: PATH is empty"]) == ("right", "")
    worker.close()


def test_every_file_of_cases_is_read() -> None:
    files = Path(__file__).with_name("attacks").glob("on_*.py")
    assert len(GROUPS) >= len(list(files))

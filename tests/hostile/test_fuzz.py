"""The short form of tests/hostile/fuzz.py, and that its damage and its judgement are real."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hostile.cost import CPU_FLOOR, MEMORY_FLOOR, Cost
from hostile.fuzz import run_case
from hostile.fuzz_target import Finding, Outcome, Target
from hostile.fuzz_targets import SESSIONS, TARGETS, ContainerTarget, ModelTarget
from hostile.model_mutations import join, parse
from system_limits import WINDOWS

if TYPE_CHECKING:
    from random import Random

CASES = 120
SEED = 20_260_401


@pytest.mark.parametrize("name", [target.name for target in SESSIONS])
def test_damaged_files_are_refused_or_compute_right(name: str, tmp_path: Path) -> None:
    target = TARGETS[name](tmp_path)
    found = Counter(target.case(SEED, index).kind for index in range(CASES))
    assert found["refused"] > CASES / 4, "most damage is damage"
    assert found["unchanged"] < CASES / 4


@pytest.mark.parametrize("name", sorted({*TARGETS} - {target.name for target in SESSIONS}))
def test_damaged_files_are_refused_or_read_within_bounds_of_memory(
    name: str, tmp_path: Path
) -> None:
    """Memory alone: processor time is for `make fuzz`, on a machine of its own."""
    target = TARGETS[name](tmp_path)
    found: Counter[str] = Counter()
    for index in range(CASES):
        kind, detail, cost = run_case(target, SEED, index)
        cost.seconds = 0.0
        assert kind != "finding" or "processor time" in detail, f"{name}:{SEED}:{index}: {detail}"
        assert not cost.excess(), f"{name}:{SEED}:{index}"
        found[kind] += 1
    assert found["refused"] > CASES / 4, "most damage is damage"
    assert found["right"] > 0
    assert found["unchanged"] < CASES / 4


class _Greedy(Target):
    """Takes more than a file of one byte may."""

    name = "greedy"

    def __init__(self, folder: Path) -> None:
        self.last = b"x"

    def run(self, random: Random) -> Outcome:
        self.taken = b"x" * (MEMORY_FLOOR + (64 << 20))
        return Outcome("right")


@pytest.mark.skipif(WINDOWS, reason="Windows' peak of memory is that of the whole process")
def test_a_case_that_takes_too_much_is_a_finding(tmp_path: Path) -> None:
    kind, detail, cost = run_case(_Greedy(tmp_path), 1, 1)
    assert kind == "finding"
    assert f"at most {MEMORY_FLOOR >> 20}" in detail
    assert cost.memory > MEMORY_FLOOR
    assert "processor time" in Cost(seconds=CPU_FLOOR + 1, size=10).excess()
    assert Cost(seconds=CPU_FLOOR + 1, size=1 << 20).excess() == ""


@pytest.mark.parametrize("index", [246, 288, 1528, 2022, 4494, 18_603])
def test_cases_that_were_findings_are_none_any_more(index: int, tmp_path: Path) -> None:
    assert ModelTarget(tmp_path).case(1, index).kind in ("refused", "right")


def test_accepted_damage_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that checks nothing: its session takes the damaged payload for the real one."""
    target = ContainerTarget(tmp_path)
    monkeypatch.setattr(Path, "write_bytes", lambda *_: 0)
    with pytest.raises(Finding, match="a damaged container was accepted"):
        [target.case(SEED, index) for index in range(20)]


def test_a_message_is_put_together_as_it_was(tmp_path: Path) -> None:
    for _, data in ModelTarget(tmp_path).bases:
        assert join(parse(data)) == data


def test_a_case_can_be_run_alone_and_gives_the_same(tmp_path: Path) -> None:
    script = Path(__file__).with_name("fuzz.py")
    done = subprocess.run(
        [sys.executable, script, "--case", f"container:{SEED}:3"],
        capture_output=True,
        text=True,
        check=True,
    )
    outcome = ContainerTarget(tmp_path).case(SEED, 3)
    assert json.loads(done.stdout)[:3] == [3, outcome.kind, outcome.detail]

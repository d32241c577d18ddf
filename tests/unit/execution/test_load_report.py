"""session.load_report(): phases that add up, and what the first run is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from small_models import feed, mlp

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ort_lite.start.load_report import LoadReport

EPS = ["CPUExecutionProvider", "OpenVINOExecutionProvider"]
CACHED = {"session.ep_context_cache": "1"}
BEHIND = {"session.ep_compile_in_background": "1"}


def session(ep: str, entries: Mapping[str, str], folder: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    for key, value in {**entries, "session.ep_context_cache_dir": str(folder)}.items():
        options.add_session_config_entry(key, value)
    return ort.InferenceSession(mlp().SerializeToString(), options, providers=[ep])


def add_up(report: LoadReport) -> None:
    named = sum(seconds for name, seconds in report.phases.items() if name != "first run")
    assert named == pytest.approx(report.total)


@pytest.mark.parametrize("ep", EPS)
@pytest.mark.parametrize("entries", [{}, CACHED, BEHIND, CACHED | BEHIND])
def test_phases_add_up(ep: str, entries: Mapping[str, str], tmp_path: Path) -> None:
    for _ in range(2):
        with session(ep, entries, tmp_path) as made:
            add_up(made.load_report())
            made.background_compile(None)
            made.run(None, feed(mlp()))
            report = made.load_report()
        add_up(report)
        assert next(iter(report.phases)) == "imports"
        assert list(report.phases)[-1] == "first run"


def test_waiting_for_another_process_is_a_phase_of_its_own(tmp_path: Path) -> None:
    for waits in (True, False):  # a hit waits for nobody
        with session(EPS[1], CACHED, tmp_path) as made:
            assert ("wait for others" in made.load_report().phases) == waits


def test_a_run_that_failed_is_not_the_first(tmp_path: Path) -> None:
    with session(EPS[0], {}, tmp_path) as made:
        with pytest.raises(ValueError, match="x"):
            made.run(None, {})
        assert "first run" not in made.load_report().phases


def test_a_run_with_options_is_the_first_as_well(tmp_path: Path) -> None:
    with session(EPS[0], {}, tmp_path) as made:
        made.run(None, feed(mlp()), ort.RunOptions())
        first = made.load_report().phases["first run"]
        made.run(None, feed(mlp()))
        assert made.load_report().phases["first run"] == first > 0


def test_the_first_run_may_be_one_in_another_thread(tmp_path: Path) -> None:
    ended = threading.Event()
    with session(EPS[0], {}, tmp_path) as made:
        made.run_async(None, feed(mlp()), lambda *_: ended.set())
        assert ended.wait(60)
        assert "first run" in made.load_report().phases

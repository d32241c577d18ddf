"""The short form of tests/endurance/soak.py, and that its judgement is real."""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from endurance.curves import rising
from endurance.drawing import draw
from endurance.samples import CURVES, count_maps, read_sample
from endurance.soak import main, run
from endurance.work import EPS

SHORT = Namespace(count=16, seconds=None, warm_up=1)
COUNTED = {"threads", "descriptors", "files"}
"""The others need a longer run to find their level."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="samples are read under /proc"
)


@pytest.mark.slow
@pytest.mark.parametrize("ep", EPS)
def test_sessions_of_every_kind_leave_nothing(ep: str) -> None:
    rows, problem = run(ep, "mixed", SHORT)
    assert problem == ""
    assert rows[-1]["done"] == SHORT.count
    assert {name: told for name, told in rising(rows).items() if name in COUNTED} == {}


def rows_of(**grown: float) -> list[dict[str, float]]:
    """Samples of which these quantities have grown by so much at the end."""
    flat = dict.fromkeys(CURVES, 1000.0)
    return [
        {"done": i, **flat, **{name: 1000 + by * i / 99 for name, by in grown.items()}}
        for i in range(100)
    ]


@pytest.mark.parametrize("name", CURVES)
def test_a_leak_would_be_found(name: str) -> None:
    assert set(rising(rows_of(**{name: 10_000}))) == {name}
    assert rising(rows_of()) == {}


def test_one_thread_for_every_tenth_session_would_be_found() -> None:
    assert "threads" in rising(rows_of(threads=10))


def test_what_a_process_holds_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other processes' files do not count
    before = read_sample(0, tmp_path)
    with (tmp_path / ".m.onnx.0123.tmp").open("wb"):
        after = read_sample(1, tmp_path)
    assert (after.files - before.files, after.descriptors - before.descriptors) == (1, 1)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (("1000-2000 rw-p 0 0:0 0", "2000-3000 rw-p 0 0:0 0"), 1),
        (("1000-2000 rw-p 0 0:0 0", "2000-3000 rwxp 0 0:0 0"), 2),
        (("1000-2000 rw-p 0 0:0 0", "2800-3000 rw-p 0 0:0 0"), 2),
        (("1000-2000 r--p 0 8:1 7 /a", "2000-3000 r--p 0 8:1 7 /a"), 2),
        (("1000-2000 rw-p 0 8:1 7 /a", "2000-3000 rw-p 0 0:0 0"), 2),
    ],
)
def test_pieces_of_a_heap_count_as_one_map(lines: tuple[str, ...], count: int) -> None:
    assert count_maps("\n".join(lines)) == count


def test_curves_are_drawn() -> None:
    drawn = ET.fromstring(draw({"CPU plain": rows_of(), "a & b": rows_of(maps=9)}))
    lines = [one for one in drawn if one.tag.endswith("polyline")]
    assert len(lines) == 2 * len(CURVES)


def test_a_soak_writes_its_curves_and_fails_where_one_rises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("endurance.soak.run", lambda *_: (rows_of(threads=50), ""))
    monkeypatch.setattr(sys, "argv", ["soak.py", "--ep", "CPU", "--out", str(tmp_path)])
    assert main() == 1
    report = json.loads((tmp_path / "soak.json").read_text())
    assert set(report["findings"]) == {"CPU plain", "CPU mixed"}
    assert (tmp_path / "soak.csv").read_text().startswith("run,done,threads")
    assert (tmp_path / "soak.svg").exists()

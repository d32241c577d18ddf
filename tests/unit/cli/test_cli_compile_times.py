"""Durations of compiles are kept by partition and settings, and cost nothing when they are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ort_lite.cli.compile_progress import MOST, estimated_share, is_step
from ort_lite.cli.compile_times import (
    FILE,
    MAX_ENTRIES,
    CompileClock,
    CompileTimes,
    key_of,
    open_times,
)

if TYPE_CHECKING:
    from pathlib import Path


class Hands:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def compile_two(path: Path, settings: str, seconds: tuple[float, float]) -> list[float | None]:
    """The durations that are known before each of two compiles, which then take `seconds`."""
    hands = Hands()
    clock = CompileClock(CompileTimes(path), settings, hands)
    known = []
    for name, length in zip(("EP_a_0", "EP_b_0"), seconds, strict=True):
        known.append(clock.begin(name))
        hands.seconds += length
    clock.end()
    return known


def test_the_next_compile_knows_how_long_the_last_one_took(tmp_path: Path) -> None:
    path = tmp_path / "new" / FILE
    assert compile_two(path, "s", (12.0, 3.5)) == [None, None]
    assert compile_two(path, "s", (20.0, 3.5)) == [12.0, 3.5]
    assert compile_two(path, "s", (1.5, 1.5)) == [20.0, 3.5]
    assert compile_two(path, "another device", (1.5, 1.5)) == [None, None]


def test_a_quick_compile_writes_nothing(tmp_path: Path) -> None:
    compile_two(tmp_path / FILE, "s", (0.5, 0.1))
    assert not (tmp_path / FILE).exists()


def test_a_compile_that_fails_is_not_recorded(tmp_path: Path) -> None:
    hands = Hands()
    CompileClock(CompileTimes(tmp_path / FILE), "s", hands).begin("EP_a_0")
    hands.seconds = 9.0
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"format": 2, "seconds": {"k": 1}}', b'{"format": 1, "seconds": 5}',
     b'{"format": 1, "seconds": {"k": "soon", "l": -1, "m": 1e999}}', b"[" * 100_000],
)  # fmt: skip
def test_a_damaged_file_is_no_estimate_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    times = CompileTimes(tmp_path / FILE)
    assert [times.last(key) for key in "klm"] == [None, None, None]
    times.record({"k": 2.0})
    assert CompileTimes(tmp_path / FILE).last("k") == 2.0


def test_a_folder_that_cannot_be_written_costs_the_estimate_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    times = CompileTimes(tmp_path / "file" / FILE)
    times.record({"k": 2.0})
    assert (tmp_path / "file").read_text() == ""


def test_the_oldest_entries_go_first(tmp_path: Path) -> None:
    path = tmp_path / FILE
    CompileTimes(path).record({str(i): 2.0 for i in range(MAX_ENTRIES)})
    CompileTimes(path).record({"new": 3.0})
    times = CompileTimes(path)
    assert (times.last("0"), times.last("1"), times.last("new")) == (None, 2.0, 3.0)


def test_the_file_lies_in_the_users_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert open_times().path == tmp_path / "ort_lite" / FILE


def test_a_key_is_of_partition_and_settings() -> None:
    keys = {key_of(name, settings) for name in "ab" for settings in "cd"}
    assert len(keys) == 4


def test_a_bar_follows_the_clock_and_never_arrives_early() -> None:
    assert estimated_share(5.0, 10.0) == 0.5
    assert estimated_share(50.0, 10.0) == MOST < 1
    assert estimated_share(5.0, None) is None


def test_steps_of_a_provider_are_not_partitions() -> None:
    assert is_step("tuning kernels")
    assert not is_step("OpenCLExecutionProvider_66fc6299fd4293df_0")

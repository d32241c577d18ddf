"""The table of NPU drivers: its form, and what doctor says of a driver that is too old."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from ort_lite.cli.accelerator_checks import check_npu, check_windows_npu
from ort_lite.cli.checks import State
from ort_lite.cli.npu_drivers import (
    FIRST_DRIVERS,
    OLDEST_ON_WINDOWS,
    RELEASES,
    compiler_note,
    driver_problem,
    parse_version,
    windows_problem,
)
from ort_lite.hw.requirements import NPU_CHIPS

if TYPE_CHECKING:
    from pathlib import Path


def test_every_entry_names_a_version_and_a_source() -> None:
    for entry in (*FIRST_DRIVERS, *RELEASES):
        assert len(parse_version(entry.driver)) == 3, entry
        assert entry.source.startswith("https://"), entry
    assert len({first.chip for first in FIRST_DRIVERS}) == len(FIRST_DRIVERS)
    for first in FIRST_DRIVERS:
        assert NPU_CHIPS[first.chip].host == first.host


def test_releases_rise_with_the_openvino_that_they_have() -> None:
    for older, newer in pairwise(RELEASES):
        assert parse_version(older.driver) < parse_version(newer.driver)
        assert parse_version(older.openvino) < parse_version(newer.openvino)


@pytest.mark.parametrize("first", FIRST_DRIVERS, ids=lambda first: first.host)
def test_a_driver_is_old_until_the_chips_first_one(first: object) -> None:
    chip, driver = (getattr(first, name) for name in ("chip", "driver"))
    assert f"older than {driver}, the first one for" in driver_problem("1.2.0", (chip,))
    assert driver_problem(driver, (chip,)) == ""
    assert driver_problem("99.0.0", ("8086:7d55", chip)) == ""
    assert driver_problem("1", (chip,)) == ""


@pytest.mark.parametrize(
    ("driver", "openvino", "needed"),
    [
        ("1.28.0", "2026.4.1", "1.39.1"),
        ("1.33.0", "2026.4.1", "1.39.1"),
        ("1.39.1", "2026.4.1", ""),
        ("1.16.0", "2025.4.1", "1.33.0"),
        ("1.39.1", "2030.1.0", ""),
        ("1.16.0", "", ""),
        ("1", "2026.4.1", ""),
    ],
)
def test_a_compiler_newer_than_the_driver_is_noted(driver: str, openvino: str, needed: str) -> None:
    note = compiler_note(driver, openvino)
    assert (f"older than {needed}, which was released with" in note) if needed else not note


def test_windows_drivers_have_an_oldest_version() -> None:
    assert OLDEST_ON_WINDOWS in windows_problem("32.0.100.2540")
    assert windows_problem(OLDEST_ON_WINDOWS) == windows_problem("unknown") == ""
    (good,) = check_windows_npu([("Intel(R) AI Boost", "32.0.100.4778")])
    (old,) = check_windows_npu([("Intel(R) AI Boost", "32.0.100.2540")])
    assert (good.state, good.fix) == (State.OK, "")
    assert (old.state, old.found) == (State.BROKEN, "Intel(R) AI Boost 32.0.100.2540")
    assert "download/794734" in old.fix
    assert [check.state for check in check_windows_npu([])] == [State.ABSENT]


@pytest.mark.parametrize(
    ("library", "state", "fix"),
    [
        ("libze_intel_npu.so.1.27.0", State.BROKEN, "the first one for Panther Lake"),
        ("libze_intel_npu.so.1.28.0", State.OK, "may refuse contexts that OpenVINO 2026.4.1"),
        ("libze_intel_npu.so.1.39.1", State.OK, ""),
        ("libze_intel_npu.so.1", State.OK, ""),
    ],
)
def test_doctor_judges_the_driver_of_a_machine(
    library: str, state: State, fix: str, tmp_path: Path
) -> None:
    chip = tmp_path / "sys/bus/pci/devices/0000:00:0b.0"
    chip.mkdir(parents=True)
    for name, text in (("class", "0x120000"), ("vendor", "0x8086"), ("device", "0xb03e")):
        (chip / name).write_text(f"{text}\n")
    for path in ("dev/accel/accel0", "usr/lib64/libze_loader.so.1.24", f"usr/lib64/{library}"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    driver = check_npu(tmp_path, "2026.4.1")[2]
    assert driver.state is state
    assert (fix in driver.fix) if fix else not driver.fix

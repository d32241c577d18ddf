"""The processor's architecture, as `platform` has it, and how many CPUs a process may use."""

from __future__ import annotations

import os
import platform
import sys

import pytest

from ort_lite.processor import count_usable_cpus, machine_name


def test_the_name_is_that_of_platform() -> None:
    assert machine_name() == platform.machine() != ""


def test_windows_says_it_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("PROCESSOR_ARCHITECTURE", "ARM64")
    assert machine_name() == "ARM64"
    monkeypatch.delenv("PROCESSOR_ARCHITECTURE")
    assert machine_name() == ""


def test_an_affinity_restricts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert count_usable_cpus() == 2


@pytest.mark.parametrize(("found", "expected"), [(16, 16), (None, 1)])
def test_other_systems_have_all_of_them(
    found: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: found)
    assert count_usable_cpus() == expected

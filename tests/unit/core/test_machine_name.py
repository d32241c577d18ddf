"""The processor's architecture is told as by `platform`, and on Windows without WMI."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

from ort_lite.machine_name import machine_name

if TYPE_CHECKING:
    import pytest


def test_the_name_is_that_of_platform() -> None:
    assert machine_name() == platform.machine() != ""


def test_windows_says_it_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("PROCESSOR_ARCHITECTURE", "ARM64")
    assert machine_name() == "ARM64"
    monkeypatch.delenv("PROCESSOR_ARCHITECTURE")
    assert machine_name() == ""

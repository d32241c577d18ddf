"""Python's exit with sessions at work in daemon threads, half made, or failed: never a crash."""

from __future__ import annotations

import pytest
from endurance.exits import CODES, ended


@pytest.mark.slow
@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize("ep", ["CPU", "OpenVINO", "OpenCL"])
def test_daemon_threads_may_run_when_python_ends(ep: str, how: str) -> None:
    ended(ep, "running", how)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.2, 0.5, 0.8])
def test_daemon_threads_may_load_when_python_ends(delay: float) -> None:
    ended("OpenVINO", "loading", "return", delay)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["compiling", "used at exit", "asked"])
@pytest.mark.parametrize("ep", ["OpenVINO", "OpenCL"])
def test_python_may_end_with_sessions_in_any_state(ep: str, state: str) -> None:
    ended(ep, state, "exit")


def test_python_may_end_after_a_failed_opencl_build() -> None:
    ended("OpenCL", "failed build", "exit")

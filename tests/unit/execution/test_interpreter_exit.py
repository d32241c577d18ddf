"""Python's exit with sessions at work in daemon threads, half made, or failed: never a crash."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from endurance.exits import CODES, ROOT, ended

from ort_lite import uncut_calls

COMPILING = """
import atexit, threading, time
import ort_lite as ort
from eps.opencl.runtime import pyopencl_binding as binding
from small_models import mlp

ending, begun = [], threading.Event()

def build_until_the_end(*arguments):
    begun.set()
    while not ending:
        time.sleep(0.01)
    build(*arguments)
    print("compiled", flush=True)

atexit.register(ending.append, True)
model, eps = mlp().SerializeToString(), ["OpenCLExecutionProvider"]
load = lambda: ort.InferenceSession(model, providers=eps, enable_fallback=0)
load().close()
build = binding._build
binding._build = build_until_the_end
threading.Thread(target=load, daemon=True).start()
begun.wait()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize("ep", ["CPU", "OpenVINO", "OpenCL"])
def test_daemon_threads_may_run_when_python_ends(ep: str, how: str) -> None:
    ended(ep, "running", how)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("ep", ["OpenVINO", "OpenCL"])
def test_daemon_threads_may_load_when_python_ends(ep: str, delay: float) -> None:
    ended(ep, "loading", "return", delay)


def test_python_waits_for_an_opencl_compile_when_it_ends() -> None:
    """Intel's compiler ends the process where exit() tears its library down meanwhile."""
    folders = [ROOT, ROOT / "tests"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMPILING],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "compiled\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("state", ["compiling", "used at exit", "asked"])
@pytest.mark.parametrize("ep", ["OpenVINO", "OpenCL"])
def test_python_may_end_with_sessions_in_any_state(ep: str, state: str) -> None:
    ended(ep, state, "exit")


def test_python_may_end_after_a_failed_opencl_build() -> None:
    ended("OpenCL", "failed build", "exit")


def test_a_call_that_a_signal_handler_left_behind_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A handler that raises where `__exit__` begins leaves the call of the ending thread open."""

    def waits(seconds: float) -> None:
        raise AssertionError(f"the exit sleeps for {seconds} s")

    calls = uncut_calls.UncutCalls()
    assert calls.begin()
    monkeypatch.setattr(uncut_calls, "sleep", waits)
    calls.end()


def test_calls_of_other_threads_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = uncut_calls.UncutCalls()
    waits: list[float] = []
    begun, ending = threading.Event(), threading.Event()

    def call() -> None:
        with calls:
            begun.set()
            ending.wait()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        ending.set()
        other.join()

    other = threading.Thread(target=call)
    other.start()
    begun.wait()
    monkeypatch.setattr(uncut_calls, "sleep", wait)
    calls.end()
    assert len(waits) == 1

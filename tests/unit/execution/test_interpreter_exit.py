"""Python's exit with sessions at work in daemon threads, half made, or failed: never a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import atexit, sys, threading, time
import ort_lite as ort
from small_models import feed, mlp

name, state, how, delay = sys.argv[1:]
model, inputs = mlp().SerializeToString(), feed(mlp())
eps = [name + "ExecutionProvider"]

def session(options=None):
    return ort.InferenceSession(model, options, providers=eps, enable_fallback=0)

def run_for_ever(one):
    begun.set()
    while True:
        one.run(None, inputs)

def load_for_ever():
    begun.set()
    while True:
        session().close()

begun = threading.Event()
if state == "running":
    one = session()
    for _ in range(2):
        threading.Thread(target=run_for_ever, args=(one,), daemon=True).start()
    begun.wait()
elif state == "loading":
    threading.Thread(target=load_for_ever, daemon=True).start()
    begun.wait()
    time.sleep(float(delay))  # wherever in a start or in a compile it is then
elif state == "compiling":
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_compile_in_background", "1")
    one = session(options)
elif state == "used at exit":
    one = session()
    atexit.register(one.run, None, inputs)
    atexit.register(lambda: session().run(None, inputs))
elif state == "failed build":
    from eps.opencl.runtime import program
    program.Program.of_source = lambda *_: (_ for _ in ()).throw(program.OpenCLError("b", -11))
    try:
        session().run(None, inputs)
    except ort.OrtLiteError:
        pass
elif state == "asked":
    one = session()
    for _ in range(20):
        one.run_async(None, inputs, lambda *_: None)
if how == "exit":
    sys.exit(3)
if how == "error":
    sys.excepthook = lambda *_: None
    raise ValueError
"""
CODES = {"return": 0, "exit": 3, "error": 1}


def ended(ep: str, state: str, how: str, delay: float = 0.0) -> None:
    """Run one program to its end; a crash, a hang or words on stderr fail the test."""
    folders = [ROOT, ROOT / "tests"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, ep, state, how, str(delay)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        check=False,
    )
    assert (done.returncode, done.stderr) == (CODES[how], "")


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

"""A forked process gets a working session or a clear error, never a hang: not at exit either."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, sys, warnings
import numpy as np
import ort_lite as ort
from small_models import feed, mlp

warnings.simplefilter("ignore")
name, road = sys.argv[1:]
model, inputs = mlp().SerializeToString(), feed(mlp())
eps = [name + "ExecutionProvider"]
session = ort.InferenceSession(model, providers=eps)
expected = session.run(None, inputs)[0]
if road == "closed":
    session.close()
if road == "fell back":  # the SDK's part is kept until the session is closed
    failed = session._present().prepared
    session._fall_back_after(ort.EPFail("as if the device were lost"), failed)
    expected = session.run(None, inputs)[0]
sys.stdout.flush()
child = os.fork()
if not child:
    try:
        if road in ("run", "fell back"):
            found = session.run(None, inputs)[0]
        elif road == "another EP":
            session.set_providers(["CPUExecutionProvider"])
            found = session.run(None, inputs)[0]
        elif road == "new":
            session = ort.InferenceSession(model, providers=eps, enable_fallback=0)
            found = session.run(None, inputs)[0]
        elif road == "fallback":
            session = ort.InferenceSession(model, providers=eps)
            found = session.run(None, inputs)[0]
            assert session.get_providers() == ["CPUExecutionProvider"]
        else:
            session.close()
            found = expected
        np.testing.assert_allclose(found, expected, atol=1e-5)
        print("answer", flush=True)
    except ort.OrtLiteError as exc:
        print(type(exc).__name__, exc, flush=True)
    sys.exit(0)  # through the interpreter's end, as a worker of a server does
_, status = os.waitpid(child, 0)
again = expected if road == "closed" else session.run(None, inputs)[0]
print("parent", np.array_equal(expected, again))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def forked(ep: str, road: str) -> str:
    """What the child and then the parent print; a hang ends the test."""
    folders = [ROOT, ROOT / "tests"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ep, road],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    child, parent = done.stdout.splitlines()
    assert parent == "parent True"
    return child


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@pytest.mark.parametrize("road", ["run", "new"])
def test_the_cpu_ep_goes_on_in_a_forked_process(road: str) -> None:
    assert forked("CPU", road) == "answer"


@pytest.mark.parametrize("ep", ["OpenVINO", "OpenCL"])
def test_a_session_with_an_sdk_says_that_its_threads_are_not_there(ep: str) -> None:
    said = forked(ep, "run")
    assert said.startswith("Fail ")
    assert f"the threads of {ep}ExecutionProvider are not in the child" in said
    assert "set_start_method('spawn')" in said


@pytest.mark.parametrize("road", ["close", "closed", "another EP"])
@pytest.mark.parametrize("ep", ["OpenVINO", "OpenCL"])
def test_what_needs_no_sdk_works_in_a_forked_process(ep: str, road: str) -> None:
    assert forked(ep, road) == "answer"


@pytest.mark.parametrize("ep", ["OpenVINO", "OpenCL"])
def test_an_sdk_is_not_started_again_in_a_forked_process(ep: str) -> None:
    said = forked(ep, "new")
    assert said.startswith("EPFail ")
    assert f"{ep}ExecutionProvider was in use when this process was forked" in said


def test_a_new_session_in_a_forked_process_may_go_on_with_the_cpu_ep() -> None:
    assert forked("OpenVINO", "fallback") == "answer"


def test_a_session_that_fell_back_to_the_cpu_ep_goes_on_in_a_forked_process() -> None:
    assert forked("OpenVINO", "fell back") == "answer"

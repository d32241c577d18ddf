"""A reload takes the driver's program out of the payload and brings no compiler along."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
from bare_python import SLOW, bare
from small_models import feed, mlp
from system_limits import WINDOWS

import ort_lite as ort
from eps.opencl.trials.failures import nothing_failed

ROOT = Path(__file__).parents[3]
OPENCL = "OpenCLExecutionProvider"
UNWANTED = {
    *(
        "dataclasses",
        "ctx_formats.model_writer",
        "eps.opencl.runtime.dynamic",
        "eps.opencl.compile.tilings",
    ),
    *("eps.opencl.payload.writer", "ort_lite.planning.naming"),
    *("eps.opencl.compile.expression", "subprocess", "selectors", "copy"),
    "ort_lite.context.hints",
    *(
        f"eps.opencl.runtime.{name}"
        for name in ("build_processes", "compiler_binding", "intel_binary")
    ),
}
COMPILER = (
    "eps.opencl.compile.codegen",
    "eps.opencl.compile.lower",
    "eps.opencl.compile.compile_partition",
    "eps.opencl.compile.fuse",
)
RELOAD = """
import ort_lite as ort
session = ort.InferenceSession({path!r}, providers=["OpenCLExecutionProvider"])
answer = session.run(None, {{"x": np.ones((2, 4), np.float32)}})[0].tolist()
"""
PACKAGE = """
import pyopencl as cl
from eps.opencl.cl.devices import platforms
assert [p.int_ptr for p in cl.get_platforms()] == [p.handle for p in platforms()]
context = cl.Context(cl.get_platforms()[0].get_devices()[:1])
queue = cl.CommandQueue(context)
found = np.zeros(4, np.float32)
there = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=np.arange(4, dtype=np.float32))
cl.enqueue_copy(queue, found, there)
assert found.tolist() == [0, 1, 2, 3]
"""
TELL = """
import sys
modules = sorted(sys.modules)
import json
print(json.dumps({"modules": modules, "answer": answer}))
"""


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = tmp_path_factory.mktemp("m") / "m.onnx"
    source.write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    with ort.InferenceSession(source, options, providers=[OPENCL]) as session:
        session.run(None, feed(mlp()))
    return str(source.with_name("m_ctx.onnx"))


def child(*parts: str) -> dict[str, Any]:
    code = "import numpy as np\n" + "".join(parts) + TELL
    return told([sys.executable, "-c", code])


def told(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_reload_imports_no_compiler_no_onnx_and_no_pyopencl(context: str) -> None:
    modules = child(RELOAD.format(path=context))["modules"]
    assert "eps.opencl.runtime.executable" in modules
    assert [name for name in modules if name.startswith(COMPILER)] == []
    assert [name for name in modules if name.split(".")[0] in {"onnx", "pyopencl"}] == []
    assert UNWANTED & set(modules) == set()


def test_a_reload_imports_little_of_python_s_own(context: str) -> None:
    found = told(bare("import numpy as np\n" + RELOAD.format(path=context) + TELL))
    assert SLOW & set(found["modules"]) == set()


def test_a_reload_imports_no_trial_where_none_has_failed(context: str) -> None:
    if not nothing_failed():
        pytest.skip("a device of this machine has failed its trial")
    modules = child(RELOAD.format(path=context))["modules"]
    assert {"eps.opencl.trials.record", "eps.opencl.trials.trial"}.isdisjoint(modules)


STARTED = """
import threading
started, starting = [], threading.Thread.start
def noting(thread):
    started.append(thread.name)
    starting(thread)
threading.Thread.start = noting
"""


def test_what_a_session_needs_next_is_imported_while_the_payload_is(context: str) -> None:
    found = child(STARTED, RELOAD.format(path=context), "\nanswer = started\n")
    assert "ort_lite modules" in found["answer"]


def test_pyopencl_works_before_and_after_ours_on_the_same_drivers(context: str) -> None:
    reload = RELOAD.format(path=context)
    alone = child(reload)["answer"]
    assert alone == child(reload, PACKAGE, reload)["answer"]
    assert alone == child("import pyopencl\n", reload, PACKAGE)["answer"]


LISTED = """
import os, sys
sys.path.insert(0, {folder!r})
from eps.opencl import FACTORY
probe = FACTORY.probe()
answer = [probe.reason, len(probe.devices)]
"""


@pytest.mark.skipif(WINDOWS, reason="on Windows the loader is the system's, not pyopencl's")
@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([], "has no extension module"),
        ([f"_cl{EXTENSION_SUFFIXES[0]}"], "loader cannot be loaded from"),
    ],
)
def test_a_pyopencl_that_holds_no_loader_is_said(
    tmp_path: Path, files: list[str], reason: str
) -> None:
    package = tmp_path / "pyopencl"
    package.mkdir()
    for name in ("__init__.py", *files):
        (package / name).write_bytes(b"")
    found, devices = child(LISTED.format(folder=str(tmp_path)))["answer"]
    assert reason in found
    assert devices == 0


def test_the_environment_is_as_before_once_drivers_are_found() -> None:
    code = "import os\nbefore = dict(os.environ)\n" + LISTED.format(folder=".")
    found = child(code, "\nanswer = [answer[1], dict(os.environ) == before]\n")["answer"]
    assert found[0] > 0
    assert found[1] is True

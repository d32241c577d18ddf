"""Where the system has no more of something a session says so, and the next one works."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from small_models import feed, mlp

import ort_lite as ort
from ort_lite.planning import optimization
from ort_lite.shortages import DESCRIPTORS, MEMORY, SPACE, THREADS, as_status

ROOT = Path(__file__).parents[3]
EPS = ["CPU", "OpenVINO", "OpenCL"]
LADDER = """
import resource, sys
import numpy as np
import ort_lite as ort
from small_models import feed, mlp

ep, = sys.argv[1:]
inputs = feed(mlp())
compiling = {"ep.context_enable": "1", "ep.context_file_path": "c.onnx"}

def use(path, entries):
    options = ort.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    names = [ep + "ExecutionProvider"]
    with ort.InferenceSession(path, options, providers=names, enable_fallback=0) as session:
        return session.run(None, inputs)[0]

right = use("m.onnx", {} if ep == "CPU" else compiling)  # and the SDK is loaded
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
for path in ["m.onnx"] if ep == "CPU" else ["m.onnx", "c.onnx"]:
    use(path, {})
    refused = works = 0
    for limit in range(3, 30):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        try:
            found = use(path, {})
        except ort.OrtLiteError as exc:
            assert "Too many open files" in str(exc) and "ulimit -n" in str(exc), exc
            refused += 1
        else:
            np.testing.assert_allclose(found, right, atol=1e-4)
            works += 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        np.testing.assert_allclose(use(path, {}), right, atol=1e-4)
        if works == 3:
            break
    print(path, "refused" if refused else "", "works" if works else "")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the system has no such limit")
@pytest.mark.parametrize("ep", EPS)
def test_a_session_without_descriptors_is_refused_and_the_next_one_works(
    ep: str, tmp_path: Path
) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    folders = [ROOT, ROOT / "tests"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LADDER, ep],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(line.endswith("refused works") for line in done.stdout.splitlines()), done.stdout


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("ep", EPS)
def test_a_session_works_where_no_thread_can_be_started(
    ep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").write_bytes(mlp().SerializeToString())
    expected = ort.InferenceSession("m.onnx", providers=["CPUExecutionProvider"]).run(
        None, feed(mlp())
    )
    roads = {"m.onnx": {"ep.context_enable": "1", "ep.context_file_path": "c.onnx"}}
    if ep != "CPU":
        roads["c.onnx"] = {"session.disable_cpu_ep_fallback": "1"}
    for path, entries in roads.items():
        options = ort.SessionOptions()
        for key, value in entries.items():
            options.add_session_config_entry(key, value)
        providers = [f"{ep}ExecutionProvider"]
        with ort.InferenceSession(path, options, providers, enable_fallback=0) as session:
            np.testing.assert_allclose(session.run(None, feed(mlp())), expected, atol=1e-4)


def test_a_process_without_threads_reloads_a_context_in_a_fresh_process(tmp_path: Path) -> None:
    """In one of its own, where SDKs are loaded in threads that help."""
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "c.onnx"))
    providers = ["OpenVINOExecutionProvider"]
    ort.InferenceSession(str(tmp_path / "m.onnx"), options, providers).close()
    code = (
        "import _thread, threading\n"
        'def refuse(*args, **kwargs):\n    raise RuntimeError("can\'t start new thread")\n'
        "threading._start_new_thread = refuse\n"
        "import ort_lite as ort, numpy as np\n"
        "s = ort.InferenceSession('c.onnx', providers=['OpenVINOExecutionProvider'])\n"
        "s.run(None, {'x': np.zeros((2, 4), np.float32)})\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )


def test_run_async_without_threads_says_so_and_runs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=["CPUExecutionProvider"])
    called: list[object] = []
    came = threading.Event()

    def callback(results: object, user_data: object, error: str) -> None:
        called.append(user_data)
        came.set()

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _refuse)
        with pytest.raises(ort.RuntimeException, match=r"can't start new thread.*ulimit -u"):
            session.run_async(None, feed(mlp()), callback, "first")
    session.run_async(None, feed(mlp()), callback, "second")
    assert came.wait(60)
    session.close()  # waits for all
    assert called == ["second"]


def _refuse(thread: threading.Thread) -> NoReturn:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        (MemoryError(), ort.RuntimeException, MEMORY),
        (RuntimeError("can't start new thread"), ort.RuntimeException, THREADS),
        (OSError(errno.EMFILE, "Too many open files"), ort.Fail, DESCRIPTORS),
        (OSError(errno.ENOSPC, "No space left on device"), ort.Fail, SPACE),
        (ImportError("x.so: failed to map segment from shared object"), None, MEMORY),
        (SystemError("error return without exception set"), None, MEMORY),
        (SyntaxError("expected ':'", (ort.__file__, 1, 1, "", 1, 1)), None, MEMORY),
    ],
)
def test_what_the_system_lacks_is_a_status_on_every_road(
    error: Exception,
    kind: type[ort.OrtLiteError] | None,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lack(*_: object, **__: object) -> NoReturn:
        raise error

    model, options = mlp().SerializeToString(), ort.SessionOptions()
    kind = kind or ort.RuntimeException
    with monkeypatch.context() as patch:
        patch.setattr(optimization, "optimize_model", lack)
        with pytest.raises(kind) as raised:
            ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        assert remedy in str(raised.value)
        with pytest.raises(kind):
            ort.ModelCompiler(options, model).compile_to_bytes()
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    right = session.run(None, feed(mlp()))
    with monkeypatch.context() as patch:
        patch.setattr(type(session._present().prepared), "run", lack)
        with pytest.raises(kind, match="the run failed"):
            session.run(None, feed(mlp()))
    np.testing.assert_array_equal(session.run(None, feed(mlp())), right)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a bug"),
        OSError(errno.EIO, "I/O error"),
        ImportError("no module"),
        SyntaxError("expected ':'", ("plugin.py", 1, 1, "", 1, 1)),
    ],
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert as_status(error, "nothing") is None

"""Compiling a plain model brings onnx's extension and nothing of the package, which still works."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_models import mlp

ROOT = Path(__file__).parents[3]

COMPILE = """
import json, sys, threading
import numpy as np
import ort_lite as ort
from ort_lite.extension_module import onnx_extension
def compiled():
    session = ort.InferenceSession({path!r}, providers=["CPUExecutionProvider"])
    return session.run(None, {{"x": np.ones((2, 4), np.float32)}})[0].tolist()
"""
PACKAGE = """
import onnx, onnx.checker, onnx.compose, onnx.inliner, onnx.parser, onnx.version_converter
import onnx.onnx_cpp2py_export as theirs
assert theirs is onnx_extension()
model = onnx.load({path!r})
onnx.checker.check_model(model, full_check=True)
onnx.version_converter.convert_version(model, model.opset_import[0].version)
assert onnx.inliner.inline_local_functions(model).graph.node
assert onnx.shape_inference.infer_shapes(model).graph.value_info
from onnx.reference import ReferenceEvaluator
answer = ReferenceEvaluator(model).run(None, {{"x": np.ones((2, 4), np.float32)}})[0]
np.testing.assert_allclose(compiled(), answer, rtol=1e-5)
"""
IN_THREADS = """
seen = []
threads = [threading.Thread(target=lambda: seen.append(onnx_extension())) for _ in range(4)]
threads.append(threading.Thread(target=lambda: __import__("onnx")))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(seen) == 4 and {{id(one) for one in seen}} == {{id(onnx_extension())}}
"""
TELL = """
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    model = tmp_path / "m.onnx"
    model.write_bytes(mlp().SerializeToString())
    return str(model)


def modules_after(path: str, *parts: str) -> set[str]:
    """What a process that runs `parts` has loaded; fails with its stderr."""
    code = "".join(part.format(path=path) for part in (COMPILE, *parts)) + TELL
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_a_plain_model_is_compiled_without_the_package(path: str) -> None:
    loaded = modules_after(path, "compiled()\n")
    assert loaded & {"onnx", "google.protobuf"} == set()
    assert "onnx.onnx_cpp2py_export" in loaded


def test_the_package_works_afterwards(path: str) -> None:
    assert "onnx" in modules_after(path, "compiled()\n", PACKAGE)


def test_the_package_may_be_there_before(path: str) -> None:
    assert "onnx" in modules_after(path, "import onnx\n", PACKAGE)


def test_threads_get_one_extension_while_another_imports_the_package(path: str) -> None:
    assert "onnx" in modules_after(path, IN_THREADS, PACKAGE)


def test_without_the_import_system_s_lock_the_package_is_taken(path: str) -> None:
    no_lock = "import ort_lite.extension_module as its\nits._IMPORT_LOCK = None\n"
    assert "onnx" in modules_after(path, no_lock, "compiled()\n", PACKAGE)

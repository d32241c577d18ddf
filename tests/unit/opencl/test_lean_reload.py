"""A reload takes the driver's program out of the payload and brings no compiler along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from small_models import feed, mlp

import ort_lite as ort

ROOT = Path(__file__).parents[3]
OPENCL = "OpenCLExecutionProvider"
COMPILER = ("eps.opencl.codegen", "eps.opencl.lower", "eps.opencl.draw", "eps.opencl.fuse")
RELOAD = """
import sys
import numpy as np
import ort_lite as ort
session = ort.InferenceSession({path!r}, providers=["OpenCLExecutionProvider"])
session.run(None, {{"x": np.ones((2, 4), np.float32)}})
assert session.explain().partitions[0].origin == "context"
print(*sys.modules)
"""


def test_a_reload_imports_no_compiler_and_no_onnx(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    with ort.InferenceSession(source, options, providers=[OPENCL]) as session:
        session.run(None, feed(mlp()))
    code = RELOAD.format(path=str(tmp_path / "m_ctx.onnx"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()
    assert "eps.opencl.runtime" in modules
    assert [name for name in modules if name.startswith(COMPILER)] == []
    assert "onnx" not in modules

"""onnxruntime's own Python packages on ort_lite's sessions; those of the installed onnxruntime."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from small_models import model
from stand_in_programs import python, stand_in

import ort_lite

PACKAGES = Path(ort_lite.__file__).parents[1]
QUANTIZE = """
import sys
import numpy as np
from onnxruntime.quantization import CalibrationDataReader, quantize_dynamic, quantize_static

class Reader(CalibrationDataReader):
    def __init__(self):
        draw = np.random.default_rng(1)
        self.feeds = iter([{'x': draw.random((4, 8), np.float32)} for _ in range(3)])
    def get_next(self):
        return next(self.feeds, None)

quantize_dynamic(sys.argv[1], sys.argv[2])
quantize_static(sys.argv[1], sys.argv[3], Reader())
"""


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    weights = {n: draw.standard_normal((8, 8), np.float32) for n in ("v", "w")}
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    ]
    path = tmp_path / "model.onnx"
    onnx.save(model(nodes, [("x", [4, 8])], [("y", [4, 8])], weights), path)
    return path


def test_quantized_models_are_those_that_onnxruntime_s_sessions_give(
    model_file: Path, tmp_path: Path
) -> None:
    """Dynamic: byte by byte. Static: scales are calibrated by a run, in float32."""
    files = {}
    for name, run in (("there", python), ("here", stand_in)):
        files[name] = [tmp_path / f"{name}_{kind}.onnx" for kind in ("dynamic", "static")]
        run("-c", QUANTIZE, model_file, *files[name])
    assert files["here"][0].read_bytes() == files["there"][0].read_bytes()
    here, there = (onnx.load(files[name][1]).graph for name in ("here", "there"))
    assert [n.op_type for n in here.node] == [n.op_type for n in there.node]
    for mine, their in zip(here.initializer, there.initializer, strict=True):
        assert mine.name == their.name
        a, b = numpy_helper.to_array(mine), numpy_helper.to_array(their)
        np.testing.assert_allclose(a, b, rtol=1e-6)  # some rounding errors of 2**-24


def test_tools_and_datasets_of_onnxruntime_run_on_our_sessions(
    model_file: Path, tmp_path: Path
) -> None:
    code = (
        "import pathlib, sys, onnx, onnxruntime as ort\n"
        "from onnxruntime.datasets import get_example\n"
        "from onnxruntime.tools.onnx_model_utils import optimize_model\n"
        "source, target = map(pathlib.Path, sys.argv[1:])\n"
        "optimize_model(source, target)\n"
        "print([node.op_type for node in onnx.load(target).graph.node])\n"
        "print(ort.InferenceSession(get_example('mul_1.onnx')).get_inputs()[0].shape)\n"
    )
    done = stand_in("-c", code, model_file, tmp_path / "optimized.onnx")
    assert done.stdout.splitlines()[-2:] == ["['MatMul', 'Relu', 'MatMul']", "[3, 2]"]


@pytest.mark.skipif((PACKAGES / "onnxruntime").is_dir(), reason="both lie in one folder: Wine")
@pytest.mark.parametrize("name", ["quantization", "tools", "transformers", "datasets"])
def test_without_an_installed_onnxruntime_the_error_says_what_to_install(name: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGES)!r})\n"
        f"import ort_lite; ort_lite.as_onnxruntime()\nimport onnxruntime.{name}"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: onnxruntime.{name} is a package of onnxruntime's")
    assert "pip install onnxruntime==" in last


def test_a_package_that_nobody_has_is_missing_as_ever() -> None:
    done = stand_in("-c", "import onnxruntime.nonsense", check=False)
    assert "ModuleNotFoundError: No module named 'onnxruntime.nonsense'" in done.stderr

"""The same model, twice, in two processes and two folders: the same files, to the byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from context_models import OPENVINO
from small_models import branching, mlp

from ort_lite.providers import catalog

ROOT = Path(__file__).parents[3]
OPENCL = "OpenCLExecutionProvider"
MODELS = {"mlp": mlp, "branching": branching}
SCRIPT = """
import sys
import ort_lite as ort
ep, *names = sys.argv[1:]
options = ort.SessionOptions()
options.add_provider(ep)
for name in names:
    for embed, form in ((False, "external"), (True, "embedded")):
        compiler = ort.ModelCompiler(options, f"{name}.onnx", embed)
        compiler.compile_to_file(f"{name}_{form}.onnx")
"""


def compiled(folder: Path, ep: str) -> dict[str, bytes]:
    """What a process of its own makes of the models, by file name."""
    folder.mkdir()
    for name, make in MODELS.items():
        (folder / f"{name}.onnx").write_bytes(make().SerializeToString())
    subprocess.run(
        [sys.executable, "-c", SCRIPT, ep, *MODELS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": folder.name[-1]},
        check=True,
        capture_output=True,
    )
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def installed(ep: str) -> bool:
    entry = catalog.entries().get(ep)
    return entry is not None and bool(entry.load().probe().devices)


@pytest.mark.parametrize("ep", [OPENVINO, OPENCL])
def test_the_same_model_gives_the_same_files(tmp_path: Path, ep: str) -> None:
    if not installed(ep):
        pytest.skip(f"{ep} has no device here")
    first, second = (compiled(tmp_path / f"run{i}", ep) for i in (1, 2))
    assert first.keys() == second.keys()
    assert len(first) == len(MODELS) * 4, "source, two forms, a payload file"
    different = [name for name in first if first[name] != second[name]]
    assert different == []
    assert (
        onnx.load_model_from_string(first["mlp_external.onnx"]).graph.node[0].op_type == "EPContext"
    )

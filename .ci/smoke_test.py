"""What an installed ort-lite must do anywhere: `smoke_test.py VERSION`, in an empty folder."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files

import numpy as np
import onnx
from onnx import TensorProto, helper

import ort_lite as ort


def main(expected: str) -> None:
    """Run a model, and the command line; check versions and the files that packages need."""
    assert ort.__version__ == version("ort-lite") == expected, (ort.__version__, expected)
    for name in ("ort_lite", "eps", "ctx_formats"):
        assert files(name).joinpath("py.typed").is_file(), f"{name} has no py.typed"
    for package, data in {
        "eps.openvino.support": "tables",
        "eps.cpu": "onnx_schemas.json",
    }.items():
        names = {entry.name for entry in files(package).iterdir()}
        assert data in names, f"{package} has no {data}"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), "model.onnx")
    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": np.array([0, 1], np.float32)})
    np.testing.assert_allclose(y, np.exp([0, 1]), rtol=1e-6)
    available = ort.get_available_providers()
    assert available == ["CPUExecutionProvider"], available
    for arguments in (["--version"], ["devices"], ["explain", "model.onnx"]):
        command = [sys.executable, "-m", "ort_lite", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(sys.argv[1])

"""A context model of OpenVINO whose payload has a wanted size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper, save

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path


def write_large_context(folder: Path, megabytes: int, rows: int) -> None:
    """Compile y = x @ w, with w of [rows, n] and the wanted size, into c.onnx of `folder`."""
    columns = megabytes * 1_000_000 // (4 * rows)
    weights = np.random.default_rng(1).standard_normal((rows, columns), dtype=np.float32)
    weights.tofile(folder / "w.data")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[rows, columns])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.data")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, rows])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, columns])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "large", [x], [y], [tensor])
    opset = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=10), folder / "m.onnx")
    options = ort.SessionOptions()
    options.add_provider("OpenVINOExecutionProvider")
    ort.ModelCompiler(options, folder / "m.onnx").compile_to_file(folder / "c.onnx")
    (folder / "w.data").unlink()

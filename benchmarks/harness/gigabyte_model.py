"""A model of one gigabyte, made on the spot: ten products with weights of 100 MB each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness.samples import Sample

if TYPE_CHECKING:
    from pathlib import Path

GIGABYTE = "gigabyte"
LAYERS = 10
WIDTH = 5120
"""5120 x 5120 float32 are 100 MiB."""


def make_gigabyte(name: str, folder: Path) -> Sample:
    """x [1, 5120] times ten square matrices, each followed by Relu; weights are in files."""
    import onnx  # noqa: PLC0415 - slow to import, and for this alone
    from onnx import helper  # noqa: PLC0415 - see above

    random = np.random.default_rng(0)
    kind = onnx.TensorProto.FLOAT
    nodes, weights = [], []
    for i in range(LAYERS):
        file = folder / f"{name}_w{i}.bin"
        (random.standard_normal((WIDTH, WIDTH), np.float32) / WIDTH**0.5).tofile(file)
        weight = onnx.TensorProto(name=f"w{i}", data_type=kind, dims=[WIDTH, WIDTH])
        weight.data_location = onnx.TensorProto.EXTERNAL
        weight.external_data.add(key="location", value=file.name)
        weights.append(weight)
        source = f"x{i}" if i else "x"
        nodes.append(helper.make_node("MatMul", [source, f"w{i}"], [f"m{i}"], name=f"matmul{i}"))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"x{i + 1}"], name=f"relu{i}"))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", kind, [1, WIDTH])],
        [helper.make_tensor_value_info(f"x{LAYERS}", kind, [1, WIDTH])],
        weights,
    )
    path = folder / f"{name}.onnx"
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[opset]), path)
    feed = folder / f"{name}.npz"
    np.savez(feed, x=random.standard_normal((1, WIDTH), np.float32))
    return Sample(name=name, path=path, feed=feed)

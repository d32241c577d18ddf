"""A model of one gigabyte, made on the spot: ten products with weights of 100 MB each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from samples import Sample

if TYPE_CHECKING:
    from pathlib import Path

GIGABYTE = "gigabyte"
LAYERS = 10
WIDTH = 5120
"""5120 x 5120 float32 are 100 MiB."""


def make_gigabyte(name: str, folder: Path) -> Sample:
    """x [1, 5120] times ten square matrices, each followed by Relu."""
    import onnx  # noqa: PLC0415 - slow to import, and for this alone
    from onnx import helper, numpy_helper  # noqa: PLC0415 - see above

    random = np.random.default_rng(0)
    nodes, weights = [], []
    for i in range(LAYERS):
        array = random.standard_normal((WIDTH, WIDTH), np.float32) / WIDTH**0.5
        weights.append(numpy_helper.from_array(array, f"w{i}"))
        source = f"x{i}" if i else "x"
        nodes.append(helper.make_node("MatMul", [source, f"w{i}"], [f"m{i}"], name=f"matmul{i}"))
        nodes.append(helper.make_node("Relu", [f"m{i}"], [f"x{i + 1}"], name=f"relu{i}"))
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", kind, [1, WIDTH])],
        [helper.make_tensor_value_info(f"x{LAYERS}", kind, [1, WIDTH])],
        weights,
    )
    opset = helper.make_opsetid("", 17)
    path = folder / f"{name}.onnx"
    path.write_bytes(
        helper.make_model(graph, ir_version=8, opset_imports=[opset]).SerializeToString()
    )
    feed = folder / f"{name}.npz"
    np.savez(feed, x=random.standard_normal((1, WIDTH), np.float32))
    return Sample(name=name, path=path, feed=feed)

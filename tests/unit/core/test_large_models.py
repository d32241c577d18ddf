"""Models beyond protobuf's 2 GiB, their weights in a data file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

ROWS, COLUMNS = 2_200_000, 256
"""2.25 GB of float32; the file is one hole but for a row, so the disk holds a few KB."""


def test_a_model_over_two_gibibytes_is_mapped_and_runs(tmp_path: Path) -> None:
    row = np.arange(COLUMNS, dtype=np.float32)
    with (tmp_path / "w.data").open("wb") as file:
        file.truncate(ROWS * COLUMNS * 4)
        file.seek((ROWS - 1) * COLUMNS * 4)
        file.write(row.tobytes())
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS])
    weights.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.data", "length": str(ROWS * COLUMNS * 4)}.items():
        weights.external_data.add(key=key, value=value)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["w", "i"], ["y"])],
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, COLUMNS])],
        [weights],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with ort.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"]) as session:
        (found,) = session.run(None, {"i": np.array([ROWS - 1, 0], np.int64)})
    np.testing.assert_array_equal(found, [row, np.zeros(COLUMNS)])

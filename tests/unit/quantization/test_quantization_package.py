"""onnxruntime's own quantization package on ort_lite's sessions: the files are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from stand_in_programs import python, stand_in

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import logging, sys
import numpy as np
logging.disable(logging.WARNING)
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat
from onnxruntime.quantization import quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
import onnx
source, folder = sys.argv[1:]
class Reader(CalibrationDataReader):
    def __init__(self):
        chance = np.random.default_rng(15)
        self.left = [chance.standard_normal((1, 3, 8, 8)).astype(np.float32) for _ in range(3)]
    def get_next(self):
        return {"x": self.left.pop()} if self.left else None
for method in ("MinMax", "Entropy", "Percentile"):
    quantize_static(source, f"{folder}/{method}.onnx", Reader(), quant_format=QuantFormat.QDQ,
        calibrate_method=getattr(CalibrationMethod, method))
quantize_static(source, f"{folder}/QOperator.onnx", Reader(), quant_format=QuantFormat.QOperator)
quantize_dynamic(source, f"{folder}/dynamic.onnx")
quantizer = MatMulBnb4Quantizer(onnx.load(source), 1, 64)
quantizer.process()
quantizer.model.save_model_to_file(f"{folder}/bnb4.onnx")
"""
FILES = ("MinMax", "Entropy", "Percentile", "QOperator", "dynamic", "bnb4")


def model() -> bytes:
    """Convolution, ReLU, pooling and a product."""
    chance = np.random.default_rng(1)
    weights = {
        "w": chance.standard_normal((16, 3, 3, 3)),
        "b": chance.standard_normal(16),
        "m": chance.standard_normal((16, 8)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])],
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the same program writes with onnxruntime and with the stand-in."""
    base = tmp_path_factory.mktemp("quantized")
    (base / "m.onnx").write_bytes(model())
    (base / "program.py").write_text(PROGRAM, encoding="utf-8")
    found = {}
    for name, run in {"onnxruntime": python, "ort_lite": stand_in}.items():
        found[name] = base / name
        found[name].mkdir()
        run(base / "program.py", base / "m.onnx", found[name])
    return found


def arrays(proto: Any) -> dict[str, Any]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_quantised_model_is_theirs(name: str, folders: dict[str, Path]) -> None:
    """Scales follow from float32 sums in another order, of 27 products and 64 values."""
    mine, theirs = (onnx.load(folders[who] / f"{name}.onnx") for who in ("ort_lite", "onnxruntime"))
    assert list(mine.graph.node) == list(theirs.graph.node)
    found, expected = arrays(mine), arrays(theirs)
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        if array.dtype == np.float32:
            np.testing.assert_allclose(found[key], array, rtol=64 * 2**-23, err_msg=key)
        else:
            wide = found[key].astype(np.int64), array.astype(np.int64)
            np.testing.assert_allclose(*wide, atol=1, err_msg=key)

"""Tensors without elements go through kernels that reshape, split and multiply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu.single_node import run_node

MS, ML = {"domain": "com.microsoft"}, {"domain": "ai.onnx.ml"}
BOTH: dict[str, Any] = {"hidden_size": 5, "direction": "bidirectional"}
GATES = (("RNN", 1), ("GRU", 3), ("LSTM", 4))
LEAF: dict[str, Any] = {
    "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_values": [0.0],
    "nodes_modes": ["LEAF"], "nodes_truenodeids": [0], "nodes_falsenodeids": [0],
    "target_treeids": [0], "target_nodeids": [0], "target_ids": [0], "target_weights": [2.0],
}  # fmt: skip


def f(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def q(*shape: int, dtype: type = np.uint8) -> Any:
    return np.ones(shape, dtype)


CASES: list[tuple[str, list[Any], dict[str, Any], tuple[int, ...]]] = [
    ("Conv", [f(0, 3, 5, 5), f(4, 3, 3, 3)], {}, (0, 4, 3, 3)),
    ("Conv", [f(1, 3, 5, 5), f(0, 3, 3, 3)], {}, (1, 0, 3, 3)),
    ("ConvTranspose", [f(0, 3, 5, 5), f(3, 4, 2, 2)], {}, (0, 4, 6, 6)),
    ("ConvInteger", [q(1, 3, 5, 5), q(0, 3, 3, 3)], {}, (1, 0, 3, 3)),
    ("ConvInteger", [q(0, 3, 5, 5), q(2, 3, 3, 3)], {}, (0, 2, 3, 3)),
    ("Conv", [f(0, 3, 4, 9), f(3, 1, 3, 3)], {"group": 3, "pads": [1] * 4}, (0, 3, 4, 9)),
    *((op, [f(0, 2, 3), f(2, n * 5, 3), f(2, n * 5, 5)], BOTH, (0, 2, 2, 5)) for op, n in GATES),
    *((op, [f(4, 0, 3), f(2, n * 5, 3), f(2, n * 5, 5)], BOTH, (4, 2, 0, 5)) for op, n in GATES),
    ("MaxPool", [f(0, 3, 5, 5)], {"kernel_shape": [2, 2]}, (0, 3, 4, 4)),
    ("GlobalAveragePool", [f(2, 3, 0, 5)], {}, (2, 3, 1, 1)),
    ("GlobalAveragePool", [f(0, 3, 4, 5)], {}, (0, 3, 1, 1)),
    ("InstanceNormalization", [f(0, 2, 4), f(2), f(2)], {}, (0, 2, 4)),
    ("MatMul", [f(4, 4), f(4, 0)], {}, (4, 0)),
    ("MatMul", [f(4, 0), f(0, 4)], {}, (4, 4)),
    ("MatMul", [f(2, 0, 3), f(3, 4)], {}, (2, 0, 4)),
    ("MatMul", [f(2, 0), f(0, 4)], {}, (2, 4)),
    ("MatMulInteger", [q(2, 0), q(0, 2, dtype=np.int8)], {}, (2, 2)),
    ("QuantizeLinear", [f(0), np.array(1, np.float32)], {}, (0,)),
    ("QuantizeLinear", [np.array(2, np.float32), np.array(1, np.float32)], {}, ()),
    ("NonMaxSuppression", [f(1, 0, 4), f(1, 1, 0), np.array([3])], {}, (0, 3)),
    ("Attention", [f(0, 5, 16), f(16, 48), f(48)], {"num_heads": 2, **MS}, (0, 5, 16)),
    ("Attention", [f(2, 0, 16), f(16, 48), f(48)], {"num_heads": 2, **MS}, (2, 0, 16)),
    ("Attention", [f(1, 2, 3, 0)] * 3, {}, (1, 2, 3, 0)),
    ("MultiHeadAttention", [f(0, 5, 16)] * 3, {"num_heads": 2, **MS}, (0, 5, 16)),
    ("MultiHeadAttention", [f(2, 5, 16), f(2, 0, 16), f(2, 0, 16)], {"num_heads": 2, **MS},
     (2, 5, 16)),
    ("MatMulNBits", [f(0, 32), q(4, 1, 16), f(4)], {"K": 32, "N": 4, "block_size": 32, **MS},
     (0, 4)),
    ("GatherBlockQuantized", [q(3, 16), np.zeros(0, np.int64), f(3, 1)],
     {"block_size": 32, **MS}, (0, 32)),
    ("DynamicQuantizeMatMul", [f(0, 3), q(3, 2, dtype=np.int8), np.array(0.1, np.float32)], MS,
     (0, 2)),
    ("TreeEnsembleRegressor", [f(0, 3)], {**LEAF, **ML}, (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "options", "shape"), CASES)
def test_nothing_in_gives_nothing_out(
    op: str, inputs: list[Any], options: dict[str, Any], shape: tuple[int, ...]
) -> None:
    assert run_node(op, *inputs, **options).shape == shape


@pytest.mark.parametrize("kind", [np.float32, np.int32])
def test_the_mean_of_nothing_is_0(kind: type[Any]) -> None:
    """As in onnxruntime; numpy has NaN."""
    found = run_node("ReduceMean", np.zeros((2, 0, 3), kind), opset=13, axes=[1])
    np.testing.assert_array_equal(found, np.zeros((2, 1, 3), kind))

"""Products of DynamicQuantizeLSTM are sums of whole numbers, scaled once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

HIDDEN, DEPTH = 64, 128
STEP = np.float32(0.3 / 255)
"""Of the quantised values, whose range is 0 to 255 steps."""


def steps_in_pairs(count: int) -> Any:
    """Whole numbers of 0 to 255, each twice, 255 and 0 among them; [count]."""
    half = np.random.default_rng(0).integers(0, 256, count // 2)
    half[:2] = 255, 0
    return np.repeat(half, 2)


def cancelling_weights(depth: int, columns: int) -> Any:
    """int8 [2, depth, columns]: each pair of rows adds up to 0."""
    half = np.random.default_rng(1).integers(-127, 128, (2, depth // 2, columns))
    return np.stack([half, -half], 2).reshape(2, depth, columns).astype(np.int8)


@pytest.mark.parametrize("columns", [1, 4 * HIDDEN], ids=["by direction", "by column"])
def test_sums_that_cancel_leave_nothing(columns: int) -> None:
    """With scales of 100, sums of rounded floats would leave more than 1e-4."""
    scale = np.full((2, columns), 100, np.float32)
    scale = scale[:, 0] if columns == 1 else scale
    zero = np.zeros(scale.shape, np.int8)
    arrays = {
        "W": cancelling_weights(DEPTH, 4 * HIDDEN),
        "R": cancelling_weights(HIDDEN, 4 * HIDDEN),
        **dict.fromkeys(("ws", "rs"), scale),
        **dict.fromkeys(("wz", "rz"), zero),
    }
    x = (steps_in_pairs(DEPTH) * STEP).astype(np.float32).reshape(1, 1, DEPTH)
    h = np.tile((steps_in_pairs(HIDDEN) * STEP).astype(np.float32), (2, 1, 1))
    c = np.random.default_rng(2).random((2, 1, HIDDEN), np.float32)
    names = ["x", "W", "R", "", "", "h", "c", "", "ws", "wz", "rs", "rz"]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y"],
        domain="com.microsoft", hidden_size=HIDDEN, direction="bidirectional",
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "lstm",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, list(value.shape))
            for name, value in (("x", x), ("h", h), ("c", c))
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, ir_version=9, opset_imports=opsets).SerializeToString()
    with ort.InferenceSession(model, providers=["CPUExecutionProvider"]) as session:
        (y,) = session.run(None, {"x": x, "h": h, "c": c})
    # All gates are 0: the input gate lets a candidate of 0 through, and half of the cell stays.
    np.testing.assert_allclose(y[0], np.tanh(c.astype(np.float64) / 2) / 2, atol=2e-7)

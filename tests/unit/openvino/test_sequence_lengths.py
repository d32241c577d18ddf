"""Recurrences that end early: OpenVINO computes every step in free shapes, so the CPU EP does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
HIDDEN, WIDTH, ROWS, STEPS = 8, 4, 3, 6
SOME = np.array([6, 2, 4], np.int32)
ALL = np.full(ROWS, STEPS, np.int32)


def recurrence(op_type: str, direction: str, lengths: Any, steps: int | str) -> bytes:
    """With lengths that are constant, or an input of the model for None."""
    random = np.random.default_rng(5)
    directions = 2 if direction == "bidirectional" else 1
    shapes = {
        "w": (directions, GATES[op_type] * HIDDEN, WIDTH),
        "r": (directions, GATES[op_type] * HIDDEN, HIDDEN),
        "b": (directions, 2 * GATES[op_type] * HIDDEN),
    }
    constants = [
        numpy_helper.from_array((random.standard_normal(shape) / 4).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, ROWS, WIDTH])]
    if lengths is None:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [ROWS]))
    else:
        constants.append(numpy_helper.from_array(lengths, "lengths"))
    attributes: dict[str, Any] = {"hidden_size": HIDDEN, "direction": direction}
    if op_type == "GRU":
        attributes["linear_before_reset"] = 1
    read = ["x", "w", "r", "b", "lengths"]
    node = helper.make_node(op_type, read, ["y", "last"], **attributes)
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in node.output]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    proto: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return proto


def provider(model: bytes, feed: dict[str, Any]) -> str:
    """Of the node, once the answers are onnxruntime's."""
    theirs = onnxruntime.InferenceSession(model, providers=[CPU]).run(None, feed)
    config = ort.SessionOptions()
    config.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, config, providers=[OPENVINO, CPU]) as mine:
        for ours, right in zip(mine.run(None, feed), theirs, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-5)
        (part,) = mine.explain().partitions
        return part.ep


def steps_of(count: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(6).standard_normal((count, ROWS, WIDTH), np.float32)}


@pytest.mark.parametrize("steps", [STEPS, "s"])
@pytest.mark.parametrize("lengths", [None, SOME], ids=["input", "constant"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op_type", list(GATES))
def test_rows_end_where_they_should(
    op_type: str, direction: str, lengths: Any, steps: int | str
) -> None:
    feed = steps_of(STEPS) | ({"lengths": SOME} if lengths is None else {})
    assert provider(recurrence(op_type, direction, lengths, steps), feed) == CPU


@pytest.mark.parametrize("op_type", list(GATES))
def test_lengths_of_all_steps_are_none(op_type: str) -> None:
    assert provider(recurrence(op_type, "forward", ALL, STEPS), steps_of(STEPS)) == OPENVINO
    assert provider(recurrence(op_type, "forward", ALL, "s"), steps_of(STEPS)) == CPU

"""STFT on the CPU EP rounds like float32, whatever the length of a frame."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import ort_lite as ort

LENGTH = 4000


@pytest.mark.parametrize("frame", [200, 320, 400, 512])
def test_a_transform_is_as_precise_as_its_type(frame: int) -> None:
    """Against the definition of STFT-17 in float64; onnxruntime 1.31.1 is at 1.5e-5 to 3.1e-5."""
    step, window = frame // 2, np.hanning(frame + 1)[:-1].astype(np.float32)
    constants = [
        helper.make_tensor("step", TensorProto.INT64, [], [step]),
        helper.make_tensor("window", TensorProto.FLOAT, [frame], window),
    ]
    graph = helper.make_graph(
        [helper.make_node("STFT", ["x", "step", "window"], ["y"], onesided=1)],
        "stft",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, LENGTH, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString()
    signal = np.random.default_rng(3).standard_normal(LENGTH).astype(np.float32)
    with ort.InferenceSession(model, providers=["CPUExecutionProvider"]) as session:
        (found,) = session.run(None, {"x": signal.reshape(1, -1, 1)})
    starts = range(0, LENGTH - frame + 1, step)
    frames = np.stack([signal[at : at + frame].astype(np.float64) * window for at in starts])
    turns = np.outer(np.arange(frame), np.arange(frame // 2 + 1)) / frame
    expected = frames @ np.exp(-2j * np.pi * turns)
    error = np.abs(found[0, ..., 0] + 1j * found[0, ..., 1] - expected).max()
    assert error < 1e-6 * np.abs(expected).max()

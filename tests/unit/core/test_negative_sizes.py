"""Dimensions of size -1 are free, as some exporters mean them, in inputs, outputs and inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort


def convolutions() -> bytes:
    """Three convolutions of stride 2, after which -1 rows and columns would be none."""
    random = np.random.default_rng(4)
    weights = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), f"w{i}")
        for i, shape in enumerate([(4, 3, 3, 3), (4, 4, 3, 3), (4, 4, 3, 3)])
    ]
    nodes = [
        helper.make_node(
            "Conv", [name, f"w{i}"], [f"c{i}"], strides=[2, 2], pads=[1, 1, 1, 1], name=f"conv{i}"
        )
        for i, name in enumerate(["x", "c0", "c1"])
    ]
    nodes.append(helper.make_node("ReduceMean", ["c2"], ["y"], axes=[2, 3]))
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "convolutions",
        [helper.make_tensor_value_info("x", floats, [-1, 3, -1, -1])],
        [helper.make_tensor_value_info("y", floats, [-1, 4, -1, -1])],
        weights,
        value_info=[helper.make_tensor_value_info("c1", floats, [-1, 4, -1, -1])],
    )
    opset = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, ir_version=8, opset_imports=opset).SerializeToString())


@pytest.mark.parametrize("provider", ["OpenVINOExecutionProvider", "CPUExecutionProvider"])
def test_models_of_negative_sizes_run_for_any_size(provider: str) -> None:
    model = convolutions()
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, options, [provider], enable_fallback=0) as mine:
        assert mine.explain().node_counts() == {provider: 4}
        assert [i.shape for i in mine.get_inputs()] == [i.shape for i in theirs.get_inputs()]
        for shape in [(1, 3, 32, 32), (2, 3, 17, 40)]:
            feed: dict[str, Any] = {
                "x": np.random.default_rng(5).standard_normal(shape).astype(np.float32)
            }
            (expected,) = theirs.run(None, feed)
            np.testing.assert_allclose(mine.run(None, feed)[0], expected, rtol=1e-4, atol=1e-5)

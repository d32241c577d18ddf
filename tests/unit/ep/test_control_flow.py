"""Nodes with bodies are offered only to providers that leave the bodies to the session."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import ort_lite as ort

ACCELERATORS = ("OpenVINOExecutionProvider", "OpenCLExecutionProvider")


@pytest.mark.parametrize("provider", ACCELERATORS)
def test_a_conditional_runs_in_the_session_and_says_why(provider: str) -> None:
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    branches = {
        f"{name}_branch": helper.make_graph([helper.make_node(op, ["x"], ["y"])], name, [], [y])
        for name, op in (("then", "Relu"), ("else", "Neg"))
    }
    inputs = [
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
    ]
    node = helper.make_node("If", ["c"], ["y"], name="choose", **branches)
    proto = helper.make_model(
        helper.make_graph([node], "g", inputs, [y]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    x = np.array([-1, 2], np.float32)
    with ort.InferenceSession(proto.SerializeToString(), providers=[provider]) as session:
        (result,) = session.run(None, {"c": np.array(1, bool), "x": x})
        nodes = [node for part in session.explain().partitions for node in part.nodes]
    np.testing.assert_array_equal(result, [0, 2])
    (choose,) = (node for node in nodes if node.name == "choose")
    assert choose.refusals[provider] == (
        "control-flow nodes run in the session; their bodies are partitioned separately"
    )

"""Windows of pools that are larger than what they lie over: cut off where onnxruntime cuts them."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import ort_lite as ort

CPU = ["CPUExecutionProvider"]
CASES = [
    (kernel, stride, pads, ceil)
    for kernel, stride, pads, ceil in product((2, 3, 5), (1, 2, 3), ((0, 0), (1, 0)), (0, 1))
]


def model(operator: str, case: tuple[int, int, tuple[int, int], int]) -> bytes:
    kernel, stride, pads, ceil = case
    node = helper.make_node(
        *(operator, ["x"], ["y"]),
        kernel_shape=[kernel],
        strides=[stride],
        pads=list(pads),
        ceil_mode=ceil,
    )
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "length"])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_short_inputs_give_what_onnxruntime_gives(operator: str, length: int) -> None:
    x = np.random.default_rng(length).standard_normal((1, 2, length)).astype(np.float32)
    answered = 0
    for case in CASES:
        content = model(operator, case)
        reference = onnxruntime.InferenceSession(content, providers=CPU)
        with ort.InferenceSession(content, providers=CPU) as session:
            try:
                (expected,) = reference.run(None, {"x": x})
            except Exception:  # noqa: BLE001 - onnxruntime has no class for it
                with pytest.raises(ort.RuntimeException, match="does not fit into"):
                    session.run(None, {"x": x})
                continue
            (answer,) = session.run(None, {"x": x})
        np.testing.assert_allclose(answer, expected, rtol=1e-6)
        answered += 1
    assert answered


@pytest.mark.parametrize("provider", ["OpenVINOExecutionProvider", "OpenCLExecutionProvider"])
def test_a_session_goes_on_with_the_cpu_ep_where_others_refuse_them(provider: str) -> None:
    content = model("MaxPool", (2, 2, (0, 0), 0))
    x = np.array([[[3], [-4]]], np.float32)
    moves = pytest.warns(UserWarning, match="goes on with: CPUExecutionProvider")
    with ort.InferenceSession(content, providers=[provider, *CPU]) as session, moves:
        (answer,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(answer, x)

"""Resize with aligned corners gives onnx.reference's numbers on every execution provider."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

PROVIDERS = ("CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_the_length_counts_before_it_is_rounded(mode: str, provider: str) -> None:
    """onnxruntime takes it after; the ONNX backend suite's cases of downsampling before."""
    for size, scale in ((5, 1.5), (7, 2.3), (5, 2.0), (3, 3.4), (7, 0.5), (10, 0.65), (4, 1.25)):
        scales = numpy_helper.from_array(np.array([1, 1, scale, 1], np.float32), "s")
        attributes = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
        graph = helper.make_graph(
            [helper.make_node("Resize", ["x", "", "s"], ["y"], **attributes)],
            "resize",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, size, 3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [scales],
        )
        opsets = [helper.make_opsetid("", 19)]
        model = helper.make_model(graph, ir_version=9, opset_imports=opsets)
        x = np.random.default_rng(0).standard_normal((1, 2, size, 3)).astype(np.float32)
        (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
        options = ort.SessionOptions()
        options.add_session_config_entry("session.placement", "all")
        data = model.SerializeToString()
        with ort.InferenceSession(data, options, providers=[provider]) as session:
            (y,) = session.run(None, {"x": x})
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5, err_msg=f"{size} * {scale}")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_sizes_are_products_in_float32(provider: str) -> None:
    """10 * 0.7 is 7 in float32, and 6.99 in float64 with the float32 number next to 0.7."""
    scales = numpy_helper.from_array(np.array([1, 1, 0.7, 1], np.float32), "s")
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 10, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [scales],
    )
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 19)])
    x = np.random.default_rng(0).standard_normal((1, 2, 10, 3)).astype(np.float32)
    data = model.SerializeToString()
    peer = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (expected,) = peer.run(None, {"x": x})
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(data, options, providers=[provider]) as session:
        (y,) = session.run(None, {"x": x})
    assert expected.shape == (1, 2, 7, 3)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)

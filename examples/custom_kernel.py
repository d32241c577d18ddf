"""Adds an operator: `custom_kernel.py` runs a model with a node com.acme::ScaledTanh."""

import numpy as np
from onnx import TensorProto, helper

import ort_lite as ort
from ort_lite.ep import KernelFn, KernelInfo, kernel


def scaled_tanh(info: KernelInfo) -> KernelFn:
    """Kernel for one node; `info` has the node's attributes."""
    by = np.float32(info.attr("by", 1.0))
    return lambda x: np.tanh(x) * by


node = helper.make_node("ScaledTanh", ["x"], ["y"], domain="com.acme", by=3.0)
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "y")]
opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.acme", 1)]
graph = helper.make_graph([node], "tanh", ends[:1], ends[1:])
model = helper.make_model(graph, opset_imports=opsets, ir_version=10)

options = ort.SessionOptions()
options.register_custom_kernel(kernel("ScaledTanh", domain="com.acme")(scaled_tanh))
session = ort.InferenceSession(model.SerializeToString(), options)
print(session.run(None, {"x": np.array([0, 1], np.float32)}))

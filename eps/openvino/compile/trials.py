"""A trial of the CPU plug-in's 8-bit kernels, with sums that are known."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import DataType, GraphDef, Model, Node, Tensor, TensorType, ValueInfo
from eps.openvino.sdk.binding import BindingModel

if TYPE_CHECKING:
    import openvino

    Array = np.ndarray[Any, np.dtype[Any]]

LARGEST = 255
"""Of uint8, and each activation."""


def sum_products(
    core: openvino.Core,
    operator: str,
    weights: Array,
    read: tuple[int, ...],
    made: tuple[int, ...],
) -> Array:
    """What the CPU device computes of activations that are all 255.

    Args:
        core: OpenVINO's.
        operator: MatMul or Conv.
        weights: Of int8; scales are 1 and zero points 0.
        read: The shape of the activations.
        made: The shape of the result, which is float32.
    """
    initializers = {
        "one": _tensor("one", np.ones((), np.float32), DataType.FLOAT),
        "unsigned": _tensor("unsigned", np.zeros((), np.uint8), DataType.UINT8),
        "signed": _tensor("signed", np.zeros((), np.int8), DataType.INT8),
        "weights": _tensor("weights", weights, DataType.INT8),
    }
    nodes = (
        Node("QuantizeLinear", ("x", "one", "unsigned"), ("q",)),
        Node("DequantizeLinear", ("q", "one", "unsigned"), ("a",)),
        Node("DequantizeLinear", ("weights", "one", "signed"), ("b",)),
        Node(operator, ("a", "b"), ("y",)),
    )
    x, y = (
        ValueInfo(name, TensorType(DataType.FLOAT, shape))
        for name, shape in (("x", read), ("y", made))
    )
    graph = GraphDef(
        name="trial", nodes=nodes, inputs=(x,), outputs=(y,), initializers=initializers
    )
    data = model_bytes(Model(graph=graph, ir_version=8, opset_imports={"": 13}))
    trial = BindingModel(core.compile_model(core.read_model(io.BytesIO(data)), "CPU", {}))
    request = trial.request()
    request.input_view(0, *trial.inputs.all)[:] = LARGEST
    (result,) = request.infer()
    return np.array(result)


def _tensor(name: str, array: Array, data_type: DataType) -> Tensor:
    return Tensor(name, data_type, array.shape, memoryview(array.tobytes()))

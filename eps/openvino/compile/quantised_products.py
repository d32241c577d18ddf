"""Writes quantised products with scales of their own for filters out in operators on floats.

eps/openvino/support/quantised_products.py says which, and when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.support.quantised_products import PRODUCTS, SCALES_BY_AXIS, weight_axis
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node, Tensor
    from eps.openvino.compile.node_writer import NodeWriter
    from ort_lite.ep import Graph


def write_out_product(node: Node, graph: Graph, writer: NodeWriter) -> None:
    """The node's operator of ai.onnx on floats; the output keeps its name."""
    product = PRODUCTS[node.op_type]
    a, a_scale, a_zero, b, b_scale, b_zero = node.inputs[:6]
    scale = _vector(graph, a_scale).reshape(())
    first = writer.add("DequantizeLinear", a, *_scalars(graph, writer, a_scale, a_zero))
    if len(_vector(graph, b_scale)) == 1 == len(_vector(graph, b_zero)):
        second = writer.add("DequantizeLinear", b, *_scalars(graph, writer, b_scale, b_zero))
    elif graph.opset_imports.get("", 1) >= SCALES_BY_AXIS:
        scales = _along_axis(node, graph, writer, (b, b_scale, b_zero))
        second = writer.add("DequantizeLinear", b, *scales, axis=weight_axis(node))
    else:
        second = _dequantize_by_axis(node, graph, writer, (b, b_scale, b_zero))
    factors = [first, second]
    if product.bias is not None and (name := _input(node, product.bias)):
        alpha = node.attributes.get("alpha")
        unit = scale * _vector(graph, b_scale)
        if alpha is not None and isinstance(alpha.value, float):
            unit = unit * np.float32(alpha.value)
        bias = (to_numpy(_constant(graph, name)).astype(np.float32) * unit).astype(np.float32)
        factors.append(writer.constant(DataType.FLOAT, bias.shape, bias.tobytes()))
    result = _input(node, product.result)
    output = "" if result else node.outputs[0]
    made = writer.add(product.operator, *factors, output=output, **node.attributes)
    if result:
        ends = _scalars(graph, writer, result, node.inputs[product.result + 1])
        writer.add("QuantizeLinear", made, *ends, output=node.outputs[0])


def _along_axis(
    node: Node, graph: Graph, writer: NodeWriter, names: tuple[str, str, str]
) -> tuple[str, str]:
    """A scale and a zero point for each filter or column, where one may be for all of them."""
    weights, *rest = names
    count = _constant(graph, weights).dims[weight_axis(node)]
    made = []
    for name in rest:
        tensor = _constant(graph, name)
        values = np.repeat(_vector(graph, name), count // len(_vector(graph, name)))
        made.append(writer.constant(tensor.data_type, (count,), values.tobytes()))
    scales, zeros = made
    return scales, zeros


def _dequantize_by_axis(
    node: Node, graph: Graph, writer: NodeWriter, names: tuple[str, str, str]
) -> str:
    """Weights as floats, in what DequantizeLinear-13 is made of: the same numbers."""
    weights, *rest = names
    dims = [1] * len(_constant(graph, weights).dims)
    dims[weight_axis(node)] = -1
    scales, zeros = (_vector(graph, name).astype(np.float32).reshape(dims) for name in rest)
    floats = writer.add("Cast", weights, to=int(DataType.FLOAT))
    if zeros.any():
        zero = writer.constant(DataType.FLOAT, zeros.shape, zeros.tobytes())
        floats = writer.add("Sub", floats, zero)
    return writer.add(
        "Mul", floats, writer.constant(DataType.FLOAT, scales.shape, scales.tobytes())
    )


def _scalars(graph: Graph, writer: NodeWriter, *names: str) -> list[str]:
    """Constants of one element, without dimensions."""
    tensors = [_constant(graph, name) for name in names]
    return [writer.constant(each.data_type, (), to_numpy(each).tobytes()) for each in tensors]


def _vector(graph: Graph, name: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return to_numpy(_constant(graph, name)).reshape(-1)


def _constant(graph: Graph, name: str) -> Tensor:
    tensor = graph.constant(name)
    assert tensor is not None, "only such nodes are accepted"
    return tensor


def _input(node: Node, place: int) -> str:
    return node.inputs[place] if place < len(node.inputs) else ""

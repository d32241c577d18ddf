"""Conv followed by BatchNormalization with constant statistics: one Conv with other weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.tensor_size import tensor_bytes
from ort_lite.transforms.attributes import float_of, int_of
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.rules import RewriteRule

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node
    from ort_lite.transforms.mutable_graph import Array, MutableGraph

FIRST_PLAIN = 7
"""BatchNormalization-7: no `is_test` any more; outputs beyond the first mean training."""
DEFAULT_EPSILON = 1e-5
FREE_COPY = 1 << 12
"""Bytes of a weight that several convolutions may have folded copies of."""


def _conv_bn(graph: MutableGraph, index: int) -> bool:
    """Fold y = (conv(x) - mean) / sqrt(var + epsilon) * scale + bias into the convolution.

    The factor of each channel is computed in float64, and a weight is off by at most two
    roundings, the bias by one, so each output is within 2 eps times the sum of |weight * x|,
    scaled as the normalisation scales, and of |bias|. Not where that would make a weight overflow.
    """
    norm = graph.node(index)
    made = graph.sole_maker(norm.inputs[0])
    if made is None or not _infers(graph, norm) or not _is_conv(made[1]):
        return False
    at, conv = made
    if _costs_memory(graph, conv.inputs[1]):
        return False
    weight = graph.array(conv.inputs[1])
    bias_name = conv.inputs[2] if len(conv.inputs) > 2 else ""
    bias = graph.array(bias_name) if bias_name else None
    statistics = [graph.array(name) for name in norm.inputs[1:5]]
    if weight is None or (bias_name and bias is None) or any(item is None for item in statistics):
        return False
    arrays = [item for item in statistics if item is not None]
    if not _fit(weight, arrays):
        return False
    folded = _fold(weight, bias, arrays, float_of(norm, "epsilon", DEFAULT_EPSILON))
    if folded is None:
        return False
    names = [
        graph.add_constant(f"{norm.outputs[0]}/{kind}", array)
        for kind, array in zip(("weight", "bias"), folded, strict=True)
    ]
    fused = replace(conv, inputs=(conv.inputs[0], *names), outputs=norm.outputs[:1])
    graph.remove_pair(at, index, fused)
    return True


def _costs_memory(graph: MutableGraph, name: str) -> bool:
    """Whether a convolution's weight is large, and another node reads it, too.

    The other one keeps it, so that thousands of convolutions with one weight would get a copy each.
    """
    tensor = graph.constant(name)
    large = tensor is not None and tensor_bytes(tensor.data_type, tensor.dims) > FREE_COPY
    return large and len(graph.users(name)) > 1


def _infers(graph: MutableGraph, norm: Node) -> bool:
    return (
        graph.opset >= FIRST_PLAIN
        and not any(norm.outputs[1:])
        and not int_of(norm, "training_mode", 0)
        and int_of(norm, "spatial", 1) == 1
    )


def _is_conv(node: Node) -> bool:
    return node.op_type == "Conv" and node.domain in ONNX_DOMAINS


def _fit(weight: Array, statistics: list[Array]) -> bool:
    """One float type, and one statistic for each output channel."""
    shape = (weight.shape[0],) if weight.ndim else ()
    return weight.dtype in (np.float32, np.float64) and all(
        item.dtype == weight.dtype and item.shape == shape for item in statistics
    )


def _fold(
    weight: Array, bias: Array | None, statistics: list[Array], epsilon: float
) -> tuple[Array, Array] | None:
    """Weight and bias of the convolution; None if a number does not fit its type."""
    scale, shift, mean, variance = (item.astype(np.float64) for item in statistics)
    before = np.zeros_like(mean) if bias is None else bias.astype(np.float64)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        columns = factor.astype(weight.dtype).reshape(-1, *(1,) * (weight.ndim - 1))
        folded = weight * columns
        offset = ((before - mean) * factor + shift).astype(weight.dtype)
    if not folded.size or not all(_finite(array) for array in (folded, offset)):
        return None
    return folded, offset


def _finite(array: Array) -> bool:
    """Whether no element is infinite or NaN; makes no array of answers."""
    return bool(np.isfinite(array.max()) and np.isfinite(array.min()))


CONV_BN = RewriteRule(
    name="ConvBNFusion",
    operators=frozenset(("BatchNormalization",)),
    rewrite=_conv_bn,
)

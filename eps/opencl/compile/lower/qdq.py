"""Conv, MatMul and Gemm of dequantised tensors: integers are multiplied, then sums are scaled.

ONNX computes with floats that DequantizeLinear made. They are whole multiples of two scales, so the
sum of their products is the exact sum of the integers' products times both: what comes out differs
from ONNX's by the rounding of floats. A QuantizeLinear that follows joins the kernel as any
elementwise operator does, and only integers are in memory between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.ir import Quantised, QuantParams
from eps.opencl.compile.lower.dense import LOWERINGS as DENSE
from eps.opencl.compile.lower.integer import integer_convolution, integer_product
from eps.opencl.compile.lower.node import NodeView, call, constant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.ir import IrTensor

    Array = np.ndarray[Any, np.dtype[Any]]


def _conv(node: NodeView) -> IrTensor:
    x, w = node.input(0).quantised, node.input(1).quantised
    if x is None or w is None or x.steps.axis is not None or w.steps.axis not in (None, 0):
        return DENSE["Conv"](node)
    weights = w.integers.constant
    if weights is None:
        return DENSE["Conv"](node)
    each = (-1, *(1,) * (weights.ndim - 1)) if w.steps.axis == 0 else ()
    centred = weights.astype(np.int16) - w.steps.zero.astype(np.int16).reshape(each)
    total = integer_convolution(node, x.integers, constant(x.steps.zero), centred)
    channels = (1, -1, *(1,) * (len(total.shape) - 2))
    bias = node.reshape(node.input(2), _shape(node.input(2), channels)) if node.has(2) else None
    return _scale_total(node, total, _scale(x.steps, w.steps, channels), bias)


def _shape(values: IrTensor, channels: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(values.size if n == -1 else n for n in channels)


def _scale(x: QuantParams, w: QuantParams, shape: tuple[int, ...]) -> Array:
    """Of the sums: both scales, that of `w` along the axis where `shape` has -1."""
    product = np.asarray(x.scale * w.scale, np.float32)
    return product.reshape(shape if w.axis is not None else ())


def _scale_total(node: NodeView, total: IrTensor, scale: Array, bias: IrTensor | None) -> IrTensor:
    result = node.pointwise(
        lambda a, s: call("mul", call("cast", a, dtype="float32"), s),
        [total, constant(scale)],
        "float32",
    )
    if bias is None:
        return result
    return node.pointwise(lambda a, b: call("add", a, b), [result, bias])


def _matmul(node: NodeView) -> IrTensor:
    a, b = node.input(0).quantised, node.input(1).quantised
    if a is None or b is None or not _fits(a, b):
        return DENSE["MatMul"](node)
    return _product(node, a, b, 1.0, None)


def _fits(a: Quantised, b: Quantised) -> bool:
    """Whether steps are the same within every sum."""
    return a.steps.axis is None and b.steps.axis in (None, max(len(b.integers.shape) - 1, 1))


def _product(
    node: NodeView, a: Quantised, b: Quantised, alpha: float, bias: IrTensor | None
) -> IrTensor:
    total = integer_product(
        node, a.integers, constant(a.steps.zero), b.integers, constant(b.steps.zero)
    )
    scale = _scale(a.steps, b.steps, (-1,)) * np.float32(alpha)
    return _scale_total(node, total, np.asarray(scale, np.float32), bias)


def _gemm(node: NodeView) -> IrTensor:
    a, b = node.input(0).quantised, node.input(1).quantised
    if a is None or b is None or node.attr("transA", 0) or node.attr("beta", 1.0) != 1.0:
        return DENSE["Gemm"](node)
    if node.attr("transB", 0):
        b = _swap_matrix(b)
    if b is None or not _fits(a, b):
        return DENSE["Gemm"](node)
    bias = node.input(2) if node.has(2) else None
    return _product(node, a, b, node.attr("alpha", 1.0), bias)


def _swap_matrix(b: Quantised) -> Quantised | None:
    """A known matrix [N, K] as [K, N]."""
    held, steps = b.integers.constant, b.steps
    if held is None:
        return None
    axis = None if steps.axis is None else 1 - steps.axis
    turned = QuantParams(dtype=steps.dtype, scale=steps.scale, zero=steps.zero, axis=axis)
    return Quantised(constant(held.T), turned)


LOWERINGS: Mapping[str, Callable[[NodeView], IrTensor]] = {
    "Conv": _conv,
    "MatMul": _matmul,
    "Gemm": _gemm,
}

"""com.microsoft products of 8-bit integers that give floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.dynamic_quantization import quantize_dynamically
from eps.cpu.kernels.matmul_integer import constant_weights, integer_matmul
from eps.cpu.kernels.quantize import requantize
from eps.cpu.products import matmul, to_int32
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"


def _dynamic_matmul(info: KernelInfo) -> KernelFn:
    """A, quantised on the fly as a whole, times quantised B: DynamicQuantizeMatMul-1."""
    prepared, empty = constant_weights(info, 1, 3), info.empty

    def run(
        a: Array, b: Array, b_scale: Array, b_zero: Array | None = None, bias: Array | None = None
    ) -> Array:
        steps, scale = quantize_dynamically(a)
        if prepared is not None:
            right = prepared.values
        else:
            right = b.astype(np.float32)
            if b_zero is not None:
                right -= b_zero.astype(np.float32)
        result = matmul(steps, right, empty)
        result *= scale * b_scale
        if bias is not None:
            result += bias
        return result

    return run


def _matmul_to_float(info: KernelInfo) -> KernelFn:
    """Quantised A times quantised B in float32: MatMulIntegerToFloat-1."""
    multiply = integer_matmul(info, 1, 5)

    def run(a: Array, b: Array, a_scale: Array, b_scale: Array, *rest: Array | None) -> Array:
        optional: list[Array | None] = [*rest, *[None] * (3 - len(rest))]
        a_zero, b_zero, bias = optional
        product = multiply(a, a_zero, b, b_zero)
        result = product.astype(np.float32, copy=False)
        result *= a_scale * b_scale
        if bias is not None:
            result += bias
        return result

    return run


def _qgemm(info: KernelInfo) -> KernelFn:
    """alpha * A' * B' + C, quantised where an output scale is given: QGemm-1.

    C is int32 in units of alpha * a_scale * b_scale.
    """
    alpha = np.float32(info.attr("alpha", 1.0))
    turn_a, turn_b = bool(info.attr("transA", 0)), bool(info.attr("transB", 0))
    multiply = None if turn_b else integer_matmul(info, 3, 5)

    def run(*inputs: Array | None) -> Array:
        operands = (*inputs, *(None,) * (9 - len(inputs)))
        a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = operands
        assert a is not None
        assert b is not None
        assert a_scale is not None
        assert b_scale is not None
        left = a.T if turn_a else a
        if multiply is not None:
            total = multiply(left, a_zero, b, b_zero)
        else:
            total = turned_b(left, a_zero, b.T, b_zero)
        if c is not None:
            total = to_int32(total) + c
        factor = np.asarray(alpha * a_scale * b_scale)
        if y_scale is None:
            return np.asarray(total.astype(np.float32) * factor)
        zero = np.zeros((), a.dtype) if y_zero is None else y_zero
        return requantize(total, np.asarray(factor / y_scale), zero)

    # B is an input of its own where it must be turned, so nothing of it is prepared.
    turned_b = integer_matmul(info, info.n_inputs, info.n_inputs)
    return run


def _matmul_integer_16(_: KernelInfo) -> KernelFn:
    """int16 matrices to int32, which wraps: MatMulInteger16-1."""
    return lambda a, b: matmul(a.astype(np.int32), b.astype(np.int32))


KERNELS: tuple[KernelDef, ...] = (
    kernel("DynamicQuantizeMatMul", domain=DOMAIN)(_dynamic_matmul),
    kernel("MatMulIntegerToFloat", domain=DOMAIN)(_matmul_to_float),
    kernel("QGemm", domain=DOMAIN)(_qgemm),
    kernel("MatMulInteger16", domain=DOMAIN)(_matmul_integer_16),
)

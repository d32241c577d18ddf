"""MatMulInteger and QLinearMatMul."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.exact_integers import exact_dtype, to_int32
from eps.cpu.kernels.matmul import matmul
from eps.cpu.kernels.quantize import quantized
from ort_lite.kernel_registry import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.kernel_registry import KernelFn, KernelInfo


def shifted(x: Array, zero: Array | None) -> Array:
    """`x` less its zero point, as int16 (int32 for wider types); `zero` broadcasts."""
    wide: Array = x.astype(np.int16 if x.dtype.itemsize == 1 else np.int32)
    if zero is not None and zero.any():
        wide -= zero.astype(wide.dtype)
    return wide


def integer_matmul(a: Array, b: Array) -> Array:
    """Exact product of `shifted` matrices, as int32."""
    kind = exact_dtype(a.shape[-1], a, b)
    return to_int32(matmul(a.astype(kind), b.astype(kind)))


def by_row(values: Array, a: Array) -> Array:
    """One value for each row of `a` as a column; anything else as it is."""
    return values[:, None] if values.ndim == 1 and values.size == a.shape[-2] else values


def _matmul_integer(info: KernelInfo) -> KernelFn:
    """ONNX MatMulInteger-10; zero points are for the tensor, rows of A or columns of B."""
    weights, weight_zero = info.constant(1), info.constant(3)
    constant_zero = info.n_inputs < 4 or not info.node.inputs[3] or weight_zero is not None
    prepared = None
    if weights is not None and constant_zero:
        prepared = shifted(weights, weight_zero)

    def run(a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
        rows = None if a_zero is None else by_row(a_zero, a)
        right = shifted(b, b_zero) if prepared is None else prepared
        return integer_matmul(shifted(a, rows), right)

    return run


def _qlinear_matmul(_: KernelInfo) -> KernelFn:
    """ONNX QLinearMatMul: an exact product, then scaled and quantised once."""

    def run(a: Array, a_scale: Array, a_zero: Array, *rest: Array) -> Array:
        b, b_scale, b_zero, y_scale, y_zero = rest
        product = integer_matmul(shifted(a, by_row(a_zero, a)), shifted(b, b_zero))
        wide = [s.astype(np.float32) for s in (by_row(a_scale, a), b_scale, y_scale)]
        factor = wide[0] * wide[1] / wide[2]
        return quantized(product.astype(np.float32) * factor, y_zero, y_zero.dtype)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("MatMulInteger", since=(10, 10))(_matmul_integer),
    kernel("QLinearMatMul", since=(10, 21))(_qlinear_matmul),
)

"""Kernels of the integer matrix products MatMulInteger and QLinearMatMul."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.kernels.quantize import requantize
from eps.cpu.products import exact_matmul, largest_shifted, subtract_zero_point, to_int32
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


@dataclass(frozen=True, slots=True)
class Weights:
    """A matrix less its zero point, as floats, and a bound on its elements."""

    values: Array
    bound: int

    @classmethod
    def of(cls, b: Array, zero: Array | None) -> Weights:
        """Zero points are for the matrix, or for its columns."""
        return cls(subtract_zero_point(b, zero), largest_shifted(b, zero))


def constant_weights(info: KernelInfo, at: int, zero_at: int) -> Weights | None:
    """Input `at` ready to be multiplied, if it and its zero point are constants."""
    b, zero = info.constant(at), info.constant(zero_at)
    has_zero_point = zero_at < info.n_inputs and bool(info.node.inputs[zero_at])
    return None if b is None or (has_zero_point and zero is None) else Weights.of(b, zero)


def integer_matmul(
    info: KernelInfo, at: int, zero_at: int
) -> Callable[[Array, Array | None, Array, Array | None], Array]:
    """A function (a, its zero, b, its zero) to the exact product, whole floats or int32.

    Args:
        info: The node.
        at: Which of its inputs b is.
        zero_at: Which one is b's zero point.
    """
    prepared, empty = constant_weights(info, at, zero_at), info.empty

    def multiply(a: Array, a_zero: Array | None, b: Array, b_zero: Array | None) -> Array:
        zero = None if a_zero is None else by_row(a_zero, a)
        weights = prepared or Weights.of(b, b_zero)
        bound = largest_shifted(a, zero) * weights.bound
        left = subtract_zero_point(a, zero, empty)
        return exact_matmul(left, weights.values, bound, empty)

    return multiply


def by_row(values: Array, a: Array) -> Array:
    """One value for each row of `a` as a column; anything else as it is."""
    return values[:, None] if values.ndim == 1 and values.size == a.shape[-2] else values


def _matmul_integer(info: KernelInfo) -> KernelFn:
    """ONNX MatMulInteger-10; zero points are for the tensor, rows of A or columns of B."""
    multiply = integer_matmul(info, 1, 3)

    def run(a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
        return to_int32(multiply(a, a_zero, b, b_zero))

    return run


def _qlinear_matmul(info: KernelInfo) -> KernelFn:
    """ONNX QLinearMatMul: an exact product, then scaled and quantised once."""
    multiply = integer_matmul(info, 3, 5)

    def run(a: Array, a_scale: Array, a_zero: Array, *rest: Array) -> Array:
        b, b_scale, b_zero, y_scale, y_zero = rest
        product = multiply(a, a_zero, b, b_zero)
        wide = [s.astype(np.float32) for s in (by_row(a_scale, a), b_scale, y_scale)]
        return requantize(product, wide[0] * wide[1] / wide[2], y_zero)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("MatMulInteger", since=(10, 10))(_matmul_integer),
    kernel("QLinearMatMul", since=(10, 21))(_qlinear_matmul),
)

"""Kernels of the matrix products MatMul and Gemm."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import computing_wide, is_floating
from eps.cpu.products import matmul
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def _matmul(info: KernelInfo) -> KernelFn:
    return computing_wide(info, partial(matmul, empty=info.empty))


def gemm_kernel(info: KernelInfo) -> KernelFn:
    """alpha * A' * B' + beta * C: ONNX Gemm."""
    alpha, beta = float(info.attr("alpha", 1.0)), float(info.attr("beta", 1.0))
    turn_a, turn_b = bool(info.attr("transA", 0)), bool(info.attr("transB", 0))
    empty = info.empty

    def gemm(a: Array, b: Array, c: Array | None = None) -> Array:
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError(f"Gemm of ranks {a.ndim} and {b.ndim}, expected 2 and 2")
        result = matmul(a.T if turn_a else a, b.T if turn_b else b, empty)
        if alpha != 1:
            result *= result.dtype.type(alpha)
        if c is not None and beta != 0:
            scaled = c if beta == 1 else c * c.dtype.type(beta)
            if np.broadcast_shapes(scaled.shape, result.shape) != result.shape:
                raise ValueError(f"C of shape {c.shape} does not broadcast to {result.shape}")
            result += scaled
        return result

    def gemm_integer(a: Array, b: Array, c: Array | None = None) -> Array:
        """Integers are computed in float64 where alpha or beta is not whole."""
        if alpha == int(alpha) and beta == int(beta):
            return gemm(a, b, c)
        wide = None if c is None else c.astype(np.float64)
        return gemm(a.astype(np.float64), b.astype(np.float64), wide).astype(a.dtype)

    def multiply_add(a: Array, b: Array, c: Array | None = None) -> Array:
        return (gemm if is_floating(a.dtype) else gemm_integer)(a, b, c)

    return computing_wide(info, multiply_add)


def _det(info: KernelInfo) -> KernelFn:
    return computing_wide(info, lambda x: np.asarray(np.linalg.det(x)).astype(x.dtype))


KERNELS: tuple[KernelDef, ...] = (
    kernel("MatMul", since=(1, 13))(_matmul),
    kernel("Gemm", since=(1, 13))(gemm_kernel),
    kernel("Det", since=(11, 22))(_det),
)

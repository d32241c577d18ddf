"""Exact products of small integers through floating-point BLAS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eps.cpu.arrays import Array, DType

FLOAT32_EXACT = 1 << 24
FLOAT64_EXACT = 1 << 53


def exact_dtype(depth: int, a: Array, b: Array) -> DType:
    """The float type in which sums of `depth` products of `a` and `b` are exact.

    `a` and `b` are integers after their zero points are subtracted.

    Raises:
        OverflowError: Not even float64 could hold the sums.
    """
    bound = depth * _largest(a) * _largest(b)
    if bound < FLOAT32_EXACT:
        return np.dtype(np.float32)
    if bound < FLOAT64_EXACT:
        return np.dtype(np.float64)
    raise OverflowError(f"sums of {depth} integer products reach {bound}, over 2^53")


def _largest(x: Array) -> int:
    """A bound on |x|: that of its type for 8 bits with a zero point, else by looking."""
    if not x.size:
        return 0
    return max(abs(int(x.min())), abs(int(x.max())))


def to_int32(x: Array) -> Array:
    """Whole floats as int32, wrapping as integer arithmetic would."""
    return x.astype(np.int64).astype(np.int32) if x.dtype == np.float64 else x.astype(np.int32)

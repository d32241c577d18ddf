"""Exact products of small integers through floating-point BLAS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.products import matmul

if TYPE_CHECKING:
    from eps.cpu.arrays import Array, Empty

FLOAT32_EXACT = 1 << 24
FLOAT64_EXACT = 1 << 53


def largest_shifted(x: Array, zero: Array | None) -> int:
    """A bound on |x - zero|: that of the type for 8 bits, else by looking."""
    if x.dtype.itemsize > 1:
        low, high = (int(x.min()), int(x.max())) if x.size else (0, 0)
    else:
        low, high = int(np.iinfo(x.dtype).min), int(np.iinfo(x.dtype).max)
    first, last = (0, 0) if zero is None or not zero.size else (int(zero.min()), int(zero.max()))
    return max(abs(low - last), abs(high - first))


def shifted(x: Array, zero: Array | None, empty: Empty = np.empty) -> Array:
    """`x` less its zero point, which broadcasts, as floats that hold every value exactly."""
    kind = np.dtype(np.float32 if x.dtype.itemsize < 3 else np.float64)
    result = empty(x.shape, kind)
    np.copyto(result, x)
    if zero is not None and zero.any():
        result -= zero.astype(kind)
    return result


def exact_matmul(a: Array, b: Array, bound: int, empty: Empty = np.empty) -> Array:
    """The product of whole numbers in floats, as floats if they hold it, else as int32.

    float32 holds the sums of so many products; a deeper product is summed up in parts, each
    exact, which is twice as fast as one in float64.

    Args:
        a: [..., M, K], of whole numbers.
        b: [..., K, N], likewise.
        bound: On the product of an element of `a` and one of `b`.
        empty: Makes the result.

    Raises:
        OverflowError: Not even float64 could hold the sums.
    """
    depth = a.shape[-1]
    part = FLOAT32_EXACT // max(bound, 1)
    if depth <= part:
        return matmul(a, b, empty)
    if part >= 32 and a.dtype == b.dtype == np.float32:
        total = matmul(a[..., :part], b[..., :part, :], empty).astype(np.int32)
        for start in range(part, depth, part):
            more = matmul(a[..., start : start + part], b[..., start : start + part, :], empty)
            total += more.astype(np.int32)
        return total
    if bound * depth >= FLOAT64_EXACT:
        raise OverflowError(f"sums of {depth} integer products reach {bound * depth}, over 2^53")
    return to_int32(matmul(a.astype(np.float64), b.astype(np.float64), empty))


def to_int32(x: Array) -> Array:
    """Whole floats as int32, wrapping as integer arithmetic would."""
    if x.dtype == np.int32:
        return x
    return x.astype(np.int64).astype(np.int32) if x.dtype == np.float64 else x.astype(np.int32)

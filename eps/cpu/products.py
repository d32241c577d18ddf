"""Matrix products of floats and of small integers, refused where the result would not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import allocate_checked
from eps.cpu.shared_products import multiply

if TYPE_CHECKING:
    from eps.cpu.arrays import Array, Empty

FLOAT32_EXACT = 1 << 24
FLOAT64_EXACT = 1 << 53


def matmul(a: Array, b: Array, empty: Empty = allocate_checked) -> Array:
    """numpy.matmul; a stack of matrices times one matrix goes to BLAS as one product.

    Args:
        a: [..., M, K], or [K].
        b: [..., K, N], or [K].
        empty: Makes the result, if there is room for it.

    Raises:
        ValueError: There is none, or the shapes do not fit.
    """
    if a.ndim < 2 or b.ndim < 2:  # no larger than what is given
        return np.asarray(np.matmul(a, b))
    kind = a.dtype if a.dtype == b.dtype else np.result_type(a, b)
    if b.ndim == 2 and a.shape[-1] == b.shape[0] and a.size and b.size:
        result = empty((*a.shape[:-1], b.shape[1]), kind)
        multiply(a.reshape(-1, b.shape[0]), b, result.reshape(-1, b.shape[1]))
        return result
    outer = a.shape[:-2]
    if outer != b.shape[:-2]:
        outer = np.broadcast_shapes(outer, b.shape[:-2])
    result = empty((*outer, a.shape[-2], b.shape[-1]), kind)
    multiply(a, b, result)
    return result


def largest_shifted(x: Array, zero: Array | None) -> int:
    """A bound on |x - zero|: that of the type for 8 bits, else by looking."""
    if x.dtype.itemsize > 1:
        low, high = (int(x.min()), int(x.max())) if x.size else (0, 0)
    else:
        low, high = int(np.iinfo(x.dtype).min), int(np.iinfo(x.dtype).max)
    first, last = (0, 0) if zero is None or not zero.size else (int(zero.min()), int(zero.max()))
    return max(abs(low - last), abs(high - first))


def subtract_zero_point(x: Array, zero: Array | None, empty: Empty = np.empty) -> Array:
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

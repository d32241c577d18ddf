"""Matrix products, refused before they are made where their result would not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import checked_empty

if TYPE_CHECKING:
    from eps.cpu.arrays import Array, Empty


def matmul(a: Array, b: Array, empty: Empty = checked_empty) -> Array:
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
        np.matmul(a.reshape(-1, b.shape[0]), b, out=result.reshape(-1, b.shape[1]))
        return result
    outer = a.shape[:-2]
    if outer != b.shape[:-2]:
        outer = np.broadcast_shapes(outer, b.shape[:-2])
    result = empty((*outer, a.shape[-2], b.shape[-1]), kind)
    return np.asarray(np.matmul(a, b, out=result))

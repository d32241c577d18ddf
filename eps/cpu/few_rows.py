"""Products of matrices of which one has few rows or columns, by BLAS's kernels for vectors.

OpenBLAS copies the larger matrix of a product into the order of its kernels, which pays if each
element is used many times. For a few rows, one product with a vector for each reads it as it is:
4 rows by 3072x768 take a third of the time or less (docs/adr/0046-shared-products.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eps.cpu.arrays import Array

FEW, SOME = 4, 6
"""Rows up to which that is faster for large matrices, and for larger ones."""
LARGE, LARGER = 3 << 16, 1 << 19
"""Elements of the other matrix. OpenBLAS has kernels without copies for small products."""


def multiply(a: Array, b: Array, out: Array) -> None:
    """numpy.matmul of two matrices, or stacks of them, into `out`; see `shared_products`."""
    rows, columns = out.shape[-2:]
    depth = a.shape[-1]
    if is_few(rows, columns * depth) and out.dtype.kind == "f":
        for row in range(rows):
            cut = slice(row, row + 1)
            np.matmul(a[..., cut, :], b, out[..., cut, :])
    elif is_few(columns, rows * depth) and out.dtype.kind == "f":
        for column in range(columns):
            cut = slice(column, column + 1)
            np.matmul(a, b[..., cut], out[..., cut])
    else:
        np.matmul(a, b, out)


def is_few(rows: int, other: int) -> bool:
    """Whether so many rows, more than one, are faster so with a matrix of `other` elements."""
    return (1 < rows <= FEW and other >= LARGE) or (1 < rows <= SOME and other >= LARGER)

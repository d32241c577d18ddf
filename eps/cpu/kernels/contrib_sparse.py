"""com.microsoft operators on sparse tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation
from eps.cpu.products import matmul
from ort_lite.ep import KernelDef, OrtSparseFormat, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo, SparseTensor


def _places(sparse: SparseTensor) -> tuple[Array, Array]:
    """Rows and columns of the elements of a matrix.

    Raises:
        ValueError: An index is outside the matrix, or rows do not begin in order.
    """
    rows, columns = sparse.dense_shape()
    if sparse.format is OrtSparseFormat.ORT_SPARSE_CSRC:
        view, count = sparse.get_csrc_data(), len(sparse.values())
        column, outer = view.inner(), view.outer()
        lengths = np.diff(outer)
        if count and (outer[0] != 0 or outer[-1] != count or (lengths < 0).any()):
            raise ValueError(f"outer indices {outer} of {count} elements do not go from 0 to there")
        row = np.repeat(np.arange(len(lengths)), lengths) if count else column
    else:
        indices = sparse.get_coo_data().indices()
        row, column = np.divmod(indices, columns or 1) if indices.ndim == 1 else indices.T
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    if not inside.all():
        raise ValueError(f"an index of the sparse tensor is outside {sparse.dense_shape()}")
    return row, column


def _sparse_matmul(info: KernelInfo) -> KernelFn:
    """Sparse A [M, K] times dense B [K, N]: SparseToDenseMatMul-1.

    A is in coordinate form, or by rows. Its zeros are put in and BLAS multiplies.
    """
    turn_a, turn_b = bool(info.attr("transA", 0)), bool(info.attr("transB", 0))
    alpha = float(info.attr("alpha", 1.0))

    def call(a: SparseTensor, b: Array) -> Array:
        shape = a.dense_shape()
        if len(shape) != 2 or b.ndim != 2:
            raise ValueError(
                f"SparseToDenseMatMul of {shape} and {list(b.shape)}, expected matrices"
            )
        row, column = _places(a)
        dense = np.zeros(check_allocation(shape, b.dtype), b.dtype)
        dense[row, column] = a.values()
        left, right = dense.T if turn_a else dense, b.T if turn_b else b
        if left.shape[1] != right.shape[0]:
            raise ValueError(f"SparseToDenseMatMul: {left.shape} times {right.shape}")
        product = matmul(np.ascontiguousarray(left), np.ascontiguousarray(right))
        return product if alpha == 1.0 else product * b.dtype.type(alpha)

    return call


KERNELS: tuple[KernelDef, ...] = (
    kernel("SparseToDenseMatMul", domain="com.microsoft")(_sparse_matmul),
)

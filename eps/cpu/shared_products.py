"""Large matrix products, in parts that threads share.

OpenBLAS divides a product among its threads beforehand, and each waits in a loop for the others. On
a machine where other programs run, a thread that waits for a core then holds up all: a product of
0.3 ms took 7 ms in the median, and ten times the processor time (docs/adr/0046-shared-products.md).
Here OpenBLAS has one thread, and the parts are shared as `shared_work` does.
"""

from __future__ import annotations

import os
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu import few_rows
from eps.cpu.blas_threads import find_blas_threads
from eps.cpu.shared_work import MOST_PARTS, find_work_threads

if TYPE_CHECKING:
    from eps.cpu.arrays import Array

    Part = tuple[Array, Array, Array]
    """Two factors and the place of their product."""

ONE_THREAD_PRODUCTS = 1 << 18
"""Multiplications that OpenBLAS leaves to one thread (interface/gemm.c)."""
LEAST_PART = 1 << 22
"""Multiplications of a part: 0.1 ms. To wake a thread takes 0.05."""
LEAST_LENGTH = 64
"""Rows or columns of a part: what it shares with others is copied for each."""
TILE = 16
"""Parts are whole tiles of OpenBLAS's kernels: rows left over are added up in another order."""


def multiply(a: Array, b: Array, out: Array) -> None:
    """numpy.matmul of two matrices, or stacks of them, into `out`.

    Args:
        a: [..., M, K].
        b: [..., K, N].
        out: [..., M, N], with the stack that both broadcast to.
    """
    each = out.shape[-1] * out.shape[-2] * a.shape[-1] if out.ndim > 1 else 0
    if each <= ONE_THREAD_PRODUCTS and each * prod(out.shape[:-2]) < 2 * LEAST_PART:
        np.matmul(a, b, out)
        return
    threads = find_blas_threads()
    if threads is None:
        few_rows.multiply(a, b, out)
        return
    with threads.single() as count:
        parts = _divide(a, b, out) if count > 1 else []
        if len(parts) < 2:
            few_rows.multiply(a, b, out)
        else:
            calls = [partial(few_rows.multiply, *part) for part in parts]
            find_work_threads(os.getpid()).run(calls, count)


def _divide(a: Array, b: Array, out: Array) -> list[Part]:
    """Parts along the longest axis of the stack, or else of the product; by shapes alone."""
    most = min(prod(out.shape) * a.shape[-1] // LEAST_PART, MOST_PARTS)
    stack = out.shape[:-2]
    if stack and max(stack) >= most > 1:
        axis, length, tile = stack.index(max(stack)) - out.ndim, max(stack), 1
    else:
        axis = -1 if out.shape[-1] >= out.shape[-2] else -2
        length, tile = out.shape[axis], TILE
        most = min(most, length // LEAST_LENGTH)
    if most < 2:
        return []
    step = -(-length // (most * tile)) * tile
    cuts = [slice(start, start + step) for start in range(0, length, step)]
    return [
        (
            a if axis == -1 else _cut(a, axis, cut),
            b if axis == -2 else _cut(b, axis, cut),
            _cut(out, axis, cut),
        )
        for cut in cuts
    ]


def _cut(array: Array, axis: int, cut: slice) -> Array:
    """A view of some elements along an axis, counted from the end; all where it broadcasts."""
    if array.ndim < -axis or array.shape[axis] == 1:
        return array
    index: tuple[Any, ...] = (..., cut, *(slice(None),) * (-axis - 1))
    part: Array = array[index]
    return part

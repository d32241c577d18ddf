"""Large matrix products, shared among threads that never wait for each other to start.

OpenBLAS divides a product among its threads beforehand, and each waits in a loop for the others. On
a machine where other programs run, a thread that waits for a core then holds up all: a product of
0.3 ms took 7 ms in the median, and ten times the processor time (docs/adr/0046-shared-products.md).
Here OpenBLAS has one thread. The thread that wants the product computes its parts one after the
other, and other threads take parts from it if they get a core in time.
"""

from __future__ import annotations

import os
from collections import deque
from functools import lru_cache
from math import prod
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.blas_threads import find_blas_threads

if TYPE_CHECKING:
    from queue import SimpleQueue

    from eps.cpu.arrays import Array

    Part = tuple[Array, Array, Array]
    """Two factors and the place of their product."""

ONE_THREAD_PRODUCTS = 1 << 18
"""Multiplications that OpenBLAS leaves to one thread (interface/gemm.c)."""
LEAST_PART = 1 << 22
"""Multiplications of a part: 0.1 ms. To wake a thread takes 0.05."""
LEAST_LENGTH = 64
"""Rows or columns of a part: what it shares with others is copied for each."""
MOST_PARTS = 16
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
        np.matmul(a, b, out)
        return
    with threads.single() as count:
        parts = _divide(a, b, out) if count > 1 else []
        if len(parts) < 2:
            np.matmul(a, b, out)
        else:
            _find_threads(os.getpid()).compute(parts, count)


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


class _SharedProduct:
    """Parts of one product, to be taken by any thread.

    Attributes:
        parts: Those that nobody has taken.
        error: What a part raised in another thread.
    """

    __slots__ = ("error", "parts")

    def __init__(self, parts: list[Part]) -> None:
        self.parts = deque(parts)
        self.error: BaseException | None = None

    def work(self) -> None:
        """Compute parts until none is left."""
        while True:
            try:
                a, b, out = self.parts.popleft()
            except IndexError:
                return
            np.matmul(a, b, out)


class ProductThreads:
    """Threads that take parts of products; daemons, since no part outlives its run."""

    def __init__(self) -> None:
        """Threads start once they are wanted."""
        from queue import SimpleQueue  # noqa: PLC0415 - lazy: rare

        self._products: SimpleQueue[tuple[_SharedProduct, Lock]] = SimpleQueue()
        self._threads: list[Thread] = []
        self._starting = Lock()

    def compute(self, parts: list[Part], count: int) -> None:
        """All products, by this thread and up to `count` - 1 that come in time.

        Raises:
            ValueError: As numpy.matmul does; also MemoryError.
        """
        product = _SharedProduct(parts)
        others = min(count, len(parts), MOST_PARTS) - 1
        if len(self._threads) < others:
            self._start(others)
        busy = [Lock() for _ in range(others)]
        for lock in busy:
            self._products.put((product, lock))
        product.work()
        for lock in busy:  # no part is left to take; some may still be computed
            with lock:
                pass
        if product.error is not None:
            raise product.error

    def _start(self, count: int) -> None:
        with self._starting:
            for number in range(len(self._threads), count):
                name = f"ort_lite products {number}"
                self._threads.append(Thread(target=self._serve, name=name, daemon=True))
                self._threads[-1].start()

    def _serve(self) -> None:
        with np.errstate(all="ignore"):  # as in a run; threads do not inherit it
            while True:
                product, lock = self._products.get()
                with lock:
                    try:
                        product.work()
                    except BaseException as exc:  # noqa: BLE001 - raised where the product is wanted
                        product.error = exc
                del product, lock  # a waiting thread would keep the arrays


@lru_cache(maxsize=1)
def _find_threads(process: int) -> ProductThreads:  # noqa: ARG001 - a forked process has no threads
    return ProductThreads()

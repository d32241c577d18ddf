"""Memory that the runs of one session use again and again for large results."""

from __future__ import annotations

import math
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import NO_QUESTION_BYTES, allocate_aligned, check_allocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelInfo

LEAST_BYTES = 1 << 16
"""Smaller arrays come from numpy, whose allocator keeps what they leave."""

MOST_KEPT_BYTES = 1 << 28
"""Blocks of one size that come back beyond this much go to the operating system."""

_BYTE = np.dtype(np.uint8)


class _Offers(threading.local):
    """Memory of a caller's for results of the step that a thread computes."""

    def __init__(self) -> None:
        self.places: list[Array] = []


class ArrayPool:
    """Blocks of memory that outlive the arrays on them.

    `peak_bytes` is the most that blocks had at once; of threads that meet, one may not be counted.

    The C library returns a large array's pages to the operating system when it is dropped, and
    the next one has them mapped and zeroed again: on a virtual machine that cost a third of
    the run of a convolutional model. Here a block comes back when the last array that shares
    its memory is gone, wherever that array went, and serves the next of its size.

    Threads may meet: all that is shared are lists and a dictionary, changed by single
    operations.
    """

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self.peak_bytes = 0
        self._offers = _Offers()
        self._free: dict[int, list[memoryview]] = {}
        self._lent: dict[int, tuple[weakref.ref[Array], int, memoryview]] = {}

    def empty(self, shape: Sequence[int], dtype: Any) -> Array:  # noqa: ANN401 - as numpy.empty
        """As numpy.empty; a large array uses a block of this pool.

        Raises:
            ValueError: The memory for it is not there.
        """
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if size < LEAST_BYTES or kind.hasobject:
            return np.empty(shape, kind)
        place = self._take_offer(tuple(shape), kind)
        if place is not None:
            return place
        if size > NO_QUESTION_BYTES:
            check_allocation(shape, kind)
        room = 1 << (size - 1).bit_length()
        block = self._take(room)
        owner = np.frombuffer(block, np.uint8, size)  # the base of every view of it
        lent = weakref.ref(owner, self._come_back)
        self._lent[id(lent)] = (lent, room, block)
        result: Array = owner.view(kind).reshape(shape)
        return result

    @contextmanager
    def offering(self, places: Sequence[Array]) -> Iterator[None]:
        """Have this thread's calls of `empty` return these arrays, each once, in their order.

        A call for another shape or type than that of the next one gets other memory.
        """
        self._offers.places = list(places)
        try:
            yield
        finally:
            self._offers.places = []

    def _take_offer(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array | None:
        places = self._offers.places
        if places and places[0].shape == shape and places[0].dtype == kind:
            return places.pop(0).view()
        return None

    def _take(self, room: int) -> memoryview:
        kept = self._free.get(room)
        if kept:
            with suppress(IndexError):  # another thread was faster
                return kept.pop()
        self.peak_bytes = max(self.peak_bytes, self.size() + room)
        # A memoryview, since an array on an array would have that one as its views' base.
        return allocate_aligned((room,), _BYTE).data

    def size(self) -> int:
        """Bytes of all blocks, on loan or not."""
        free = sum(room * len(blocks) for room, blocks in list(self._free.items()))
        return free + sum(room for _, room, _ in list(self._lent.values()))

    def _come_back(self, lent: weakref.ref[Array]) -> None:
        _, room, block = self._lent.pop(id(lent))
        kept = self._free.setdefault(room, [])
        if len(kept) * room < MOST_KEPT_BYTES:
            kept.append(block)


def into(info: KernelInfo, function: Callable[..., Any]) -> Callable[[Array], Array]:
    """`function` of one array and an `out` of the same type, with large results from `info`."""
    empty = info.empty

    def call(x: Array) -> Array:
        if x.nbytes < LEAST_BYTES:
            return np.asarray(function(x))
        return np.asarray(function(x, out=empty(x.shape, x.dtype)))

    return call


def broadcasting(info: KernelInfo, function: np.ufunc) -> Callable[[Array, Array], Array]:
    """`function` of two arrays of one type, which its result has too."""
    empty = info.empty

    def call(a: Array, b: Array) -> Array:
        if (a.nbytes < LEAST_BYTES and b.nbytes < LEAST_BYTES) or a.dtype != b.dtype:
            return np.asarray(function(a, b))
        same = a.shape == b.shape or not b.shape
        shape = a.shape if same else np.broadcast_shapes(a.shape, b.shape)
        return np.asarray(function(a, b, out=empty(shape, a.dtype)))

    return call

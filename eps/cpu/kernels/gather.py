"""Operators that pick elements by index."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import NO_QUESTION_BYTES, axis_in, check_allocation
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def checked_indices(indices: Array, size: int) -> Array:
    """`indices` counted from the front.

    Raises:
        IndexError: One is outside [-size, size); with ONNX Runtime's text.
    """
    if not indices.size:
        return indices
    if indices.size == 1:  # of a shape, as a rule
        low = high = int(indices.item())
    else:
        low, high = int(indices.min()), int(indices.max())
    if low < -size or high >= size:
        wrong = low if low < -size else high
        raise IndexError(
            f"indices element out of data bounds, idx={wrong} must be within the inclusive "
            f"range [{-size},{size - 1}]"
        )
    return indices if low >= 0 else np.where(indices < 0, indices + size, indices)


def _gather(info: KernelInfo) -> KernelFn:
    axis = info.attr("axis", 0)
    fixed = info.constant(1)
    if fixed is not None and not fixed.ndim:
        return _slice_at(axis, fixed)

    def gather(x: Array, indices: Array) -> Array:
        at = axis_in(axis, x.ndim)
        shape = (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])
        if indices.size * x.nbytes > NO_QUESTION_BYTES:
            check_allocation(shape, x.dtype)
        return np.asarray(x.take(checked_indices(indices, x.shape[at]), at))

    return gather


def _slice_at(axis: int, index: Array) -> KernelFn:
    """Gather of one slice, which is a view."""
    place = int(index)

    def gather_one(x: Array, _: Array) -> Array:
        at = axis_in(axis, x.ndim)
        if not -x.shape[at] <= place < x.shape[at]:
            checked_indices(index, x.shape[at])
        where: tuple[slice | int, ...] = (*(slice(None),) * at, place)
        return np.asarray(x[where])

    return gather_one


def element_places(shape: tuple[int, ...], indices: Array, axis: int) -> Array:
    """Places in a flat tensor of `shape` that GatherElements and ScatterElements mean.

    Every index stands for the element at its own position but for `axis`.

    Raises:
        ValueError: `indices` has another rank, or is longer than the tensor on another axis.
        IndexError: An index is out of bounds.
    """
    rank = len(shape)
    if indices.ndim != rank or any(d != axis and indices.shape[d] > shape[d] for d in range(rank)):
        raise ValueError(f"indices of shape {indices.shape} do not fit data of shape {shape}")
    strides = [math.prod(shape[d + 1 :]) for d in range(rank)]
    places = checked_indices(indices, shape[axis]).astype(np.intp, copy=False) * strides[axis]
    for d in range(rank):
        if d != axis and indices.shape[d] > 1:
            steps = np.arange(indices.shape[d]) * strides[d]
            places += steps.reshape((-1,) + (1,) * (rank - d - 1))
    return places


def _gather_elements(info: KernelInfo) -> KernelFn:
    axis = info.attr("axis", 0)

    def gather_elements(x: Array, indices: Array) -> Array:
        places = element_places(x.shape, indices, axis_in(axis, x.ndim))
        return np.take(x.reshape(-1), places)

    return gather_elements


def slice_places(shape: tuple[int, ...], indices: Array) -> tuple[Array, int]:
    """Which slices index tuples name, counted in slices, and the size of one.

    `indices` is [*picks, k]; each tuple names a slice of shape[k:].

    Raises:
        ValueError: Tuples are longer than the rank.
        IndexError: An index is out of bounds.
    """
    count = indices.shape[-1] if indices.ndim else 0
    if not 1 <= count <= len(shape):
        raise ValueError(f"indices of shape {indices.shape} do not fit data of shape {shape}")
    places = np.zeros(indices.shape[:-1], np.intp)
    for d in range(count):
        places *= shape[d]
        places += checked_indices(indices[..., d], shape[d])
    return places, math.prod(shape[count:])


def _gather_nd(info: KernelInfo) -> KernelFn:
    batch_dims = info.attr("batch_dims", 0)

    def gather_nd(x: Array, indices: Array) -> Array:
        batch = x.shape[:batch_dims]
        if indices.shape[:batch_dims] != batch:
            raise ValueError(f"batch dimensions {indices.shape[:batch_dims]}, not {batch}")
        places, size = slice_places(x.shape[batch_dims:], indices)
        rest = x.shape[batch_dims + indices.shape[-1] :]
        if batch_dims:
            per_batch = math.prod(x.shape[batch_dims : batch_dims + indices.shape[-1]])
            offsets = np.arange(math.prod(batch)) * per_batch
            places += offsets.reshape(batch + (1,) * (places.ndim - batch_dims))
        if not size:
            return np.empty(places.shape + rest, x.dtype)
        if places.size * size > NO_QUESTION_BYTES:
            check_allocation((places.size, size), x.dtype)
        return np.take(x.reshape(-1, size), places, 0).reshape(places.shape + rest)

    return gather_nd


KERNELS: tuple[KernelDef, ...] = (
    kernel("Gather", since=(1, 13))(_gather),
    kernel("GatherElements", since=(11, 13))(_gather_elements),
    kernel("GatherND", since=(11, 13))(_gather_nd),
)

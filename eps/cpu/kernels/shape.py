"""Operators that reshape a tensor without moving elements, or return its shape."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.array_pool import LEAST_BYTES
from eps.cpu.arrays import SIZES, axis_in, check_allocation
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def integers(values: Array) -> list[int]:
    """The elements of an integer tensor as Python integers."""
    flat: list[int] = values.reshape(-1).tolist()
    return flat


def _shape(info: KernelInfo) -> KernelFn:
    """ONNX Shape; start and end (from version 15) are clamped to the rank."""
    start, end = info.attr("start", 0), info.attr("end")
    return lambda x: np.array(x.shape[start:end], np.int64)


def _size(_: KernelInfo) -> KernelFn:
    return lambda x: np.array(x.size, np.int64)


MOST_COLUMNS = 4
LEAST_COPIED = 1 << 12
"""Elements of an array; numpy's own copy of a smaller one takes a few microseconds."""


def copy_few_columns(x: Array) -> Array:
    """A copy of a transposed view with few elements along its last axis; another `x` as it is.

    numpy copies such a view, as of the channels of an image, one row of few elements after the
    other. One column after the other takes a third to a fifth of the time.
    """
    if x.flags.c_contiguous or not 1 < x.shape[-1] <= MOST_COLUMNS or x.size < LEAST_COPIED:
        return x
    if abs(x.strides[-1]) <= x.itemsize:
        return x
    result = np.empty(x.shape, x.dtype)
    for column in range(x.shape[-1]):
        result[..., column] = x[..., column]
    return result


def reshape_array(x: Array, shape: Sequence[int], *, allow_zero: bool = False) -> Array:
    """`x` in shape `shape`, where -1 is what remains and 0 is x's own dimension.

    Raises:
        ValueError: The elements do not fit; also where a 0 has no dimension to stand for.
    """
    target = list(shape)
    if not allow_zero:
        for axis, dim in enumerate(target):
            if dim == 0:
                if axis >= x.ndim:
                    raise ValueError(f"shape {target} takes dimension {axis} of {x.shape}")
                target[axis] = x.shape[axis]
    try:
        return copy_few_columns(x).reshape(target)
    except ValueError as exc:
        raise ValueError(
            "The input tensor cannot be reshaped to the requested shape. Input shape:"
            f"{list(x.shape)}, requested shape:{list(shape)}"
        ) from exc


def _reshape(info: KernelInfo) -> KernelFn:
    """ONNX Reshape-5: the shape is an input."""
    allow_zero = bool(info.attr("allowzero", 0))
    constant = info.constant(1)
    if constant is None:
        return lambda x, shape: reshape_array(x, integers(shape), allow_zero=allow_zero)
    fixed = integers(constant)
    return lambda x, _: reshape_array(x, fixed, allow_zero=allow_zero)


def _reshape_attribute(info: KernelInfo) -> KernelFn:
    """ONNX Reshape-1: the shape is an attribute."""
    fixed = info.attr("shape", [])
    return lambda x: reshape_array(x, fixed)


def _flatten(info: KernelInfo) -> KernelFn:
    axis = info.attr("axis", 1)

    def flatten(x: Array) -> Array:
        split = axis + x.ndim if axis < 0 else axis
        if not 0 <= split <= x.ndim:
            raise ValueError(f"axis {axis} is not in [-{x.ndim}, {x.ndim}]")
        return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))

    return flatten


def _squeeze(info: KernelInfo) -> KernelFn:
    """ONNX Squeeze; axes are an attribute before version 13, then an input."""
    fixed = info.attr("axes")
    constant = info.constant(1)
    if constant is not None:
        fixed = integers(constant)
    fixed_axes = None if fixed is None else tuple(fixed)

    def squeeze(x: Array, axes: Array | None = None) -> Array:
        if fixed_axes is not None or axes is None:
            return x.squeeze(fixed_axes)
        return x.squeeze(tuple(integers(axes)))

    return squeeze


def _unsqueeze(info: KernelInfo) -> KernelFn:
    """ONNX Unsqueeze; axes count in the result, in any order."""
    fixed = info.attr("axes")
    constant = info.constant(1)
    if constant is not None:
        fixed = integers(constant)
    if fixed is not None:
        fixed_axes = tuple(fixed)
        index = lru_cache(maxsize=SIZES)(lambda rank: _with_new_axes(rank, fixed_axes))
        return lambda x, _=None: x[index(x.ndim)]
    return lambda x, axes: np.expand_dims(x, tuple(integers(axes)))


def _with_new_axes(rank: int, axes: Sequence[int]) -> tuple[slice | None, ...]:
    """An index into an array of `rank` that gives it further axes, where `axes` has them."""
    whole = rank + len(axes)
    new = {axis_in(axis, whole) for axis in axes}
    if len(new) != len(axes):
        raise ValueError(f"'axes' has a duplicate: {list(axes)}")
    return tuple(None if axis in new else slice(None) for axis in range(whole))


def _transpose(info: KernelInfo) -> KernelFn:
    order = info.attr("perm")
    if order is None:
        return np.transpose
    return lambda x: x.transpose(order)


def _identity(_: KernelInfo) -> KernelFn:
    return lambda x: x


def expand_array(x: Array, target: Sequence[int]) -> Array:
    """A view of `x` broadcast with shape `target`: ONNX Expand-8."""
    shape = np.broadcast_shapes(x.shape, tuple(target))
    return np.broadcast_to(x, check_allocation(shape, x.dtype))


def _expand(_: KernelInfo) -> KernelFn:
    return lambda x, shape: expand_array(x, integers(shape))


def _tile_array(x: Array, repeats: Sequence[int]) -> Array:
    if len(repeats) != x.ndim:
        raise ValueError(f"'repeats' has {len(repeats)} entries for rank {x.ndim}")
    sizes = [dim * count for dim, count in zip(x.shape, repeats, strict=True)]
    check_allocation(sizes, x.dtype)
    return np.tile(x, tuple(repeats))


def _tile(_: KernelInfo) -> KernelFn:
    return lambda x, repeats: _tile_array(x, integers(repeats))


def _tile_axis(_: KernelInfo) -> KernelFn:
    """ONNX Tile-1: inputs `tiles` and `axis`."""

    def tile(x: Array, tiles: Array, axis: Array) -> Array:
        repeats = [1] * x.ndim
        repeats[axis_in(integers(axis)[0], x.ndim)] = integers(tiles)[0]
        return _tile_array(x, repeats)

    return tile


def _concat(info: KernelInfo) -> KernelFn:
    axis = info.attr("axis", 1)

    def concat(*parts: Array) -> Array:
        first = parts[0]
        if sum([part.nbytes for part in parts]) < LEAST_BYTES or not first.ndim:
            return np.concatenate(parts, axis)
        shape = list(first.shape)
        shape[axis_in(axis, first.ndim)] = sum(
            part.shape[axis] if part.ndim == first.ndim else 0 for part in parts
        )
        return np.concatenate(parts, axis, out=info.empty(shape, first.dtype))

    return concat


def split_sizes(total: int, count: int) -> list[int]:
    """`count` sizes, equal but for a smaller last one: ONNX Split-18."""
    size = -(-total // count)
    sizes = [size] * count
    sizes[-1] = total - size * (count - 1)
    if sizes[-1] < 0:
        raise ValueError(f"{total} elements cannot be split into {count} parts")
    return sizes


def parts_of(x: Array, sizes: Sequence[int], axis: int) -> tuple[Array, ...]:
    """Views of consecutive parts along `axis`.

    Raises:
        ValueError: The sizes are negative or do not add up.
    """
    axis = axis_in(axis, x.ndim)
    if sum(sizes) != x.shape[axis] or any(size < 0 for size in sizes):
        raise ValueError(
            f"Cannot split using values in 'split' attribute. Axis={axis} "
            f"Input shape={list(x.shape)} 'split' sizes={list(sizes)}"
        )
    before = (slice(None),) * axis
    parts = []
    start = 0
    for size in sizes:
        parts.append(x[(*before, slice(start, start + size))])
        start += size
    return tuple(parts)


def _split(info: KernelInfo) -> KernelFn:
    """ONNX Split; sizes are an attribute before version 13, then an input."""
    axis = info.attr("axis", 0)
    count = info.attr("num_outputs", info.n_outputs)
    fixed = info.attr("split")
    constant = info.constant(1)
    if constant is not None:
        fixed = integers(constant)

    def split(x: Array, sizes: Array | None = None) -> tuple[Array, ...]:
        lengths = fixed if sizes is None or fixed is not None else integers(sizes)
        if lengths is None:
            total = x.shape[axis_in(axis, x.ndim)]
            if info.since_version < 18 and total % count:
                raise ValueError(
                    f"Input cannot be split evenly on selected axis. Input shape="
                    f"{list(x.shape)} Axis={axis} NumOutputs={count}"
                )
            lengths = split_sizes(total, count)
        return parts_of(x, lengths, axis)

    return split


KERNELS: tuple[KernelDef, ...] = (
    kernel("Shape", since=(1, 25))(_shape),
    kernel("Size", since=(1, 25))(_size),
    kernel("Reshape", since=(1, 1))(_reshape_attribute),
    kernel("Reshape", since=(5, 25))(_reshape),
    kernel("Flatten", since=(1, 25))(_flatten),
    kernel("Squeeze", since=(1, 25))(_squeeze),
    kernel("Unsqueeze", since=(1, 25))(_unsqueeze),
    kernel("Transpose", since=(1, 25))(_transpose),
    kernel("Identity", since=(1, 25))(_identity),
    kernel("Expand", since=(8, 13))(_expand),
    kernel("Tile", since=(1, 1))(_tile_axis),
    kernel("Tile", since=(6, 13))(_tile),
    kernel("Concat", since=(1, 13))(_concat),
    kernel("Split", since=(1, 18))(_split),
)

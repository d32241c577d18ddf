"""Operators that cut tensors, pad them, or reverse parts of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import SIZES, axis_in, check_allocation
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

Slices = tuple[slice, ...]


def slices_for(
    rank: int,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Slices:
    """Python's slices for ONNX Slice, which clamps as Python does.

    Raises:
        ValueError: The lists differ in length, an axis repeats, or a step is 0.
    """
    chosen = range(len(starts)) if axes is None else [axis_in(a, rank) for a in axes]
    jumps = [1] * len(starts) if steps is None else steps
    if len({*chosen}) != len(chosen):
        raise ValueError(f"'axes' has duplicates: {list(chosen)}")
    if any(jump == 0 for jump in jumps):
        raise ValueError("'step' value cannot be 0")
    result = [slice(None)] * rank
    for axis, start, end, jump in zip(chosen, starts, ends, jumps, strict=True):
        # A negative end counts from the back even when walking backwards; what is still
        # negative is then before the first element, which Python writes as None.
        result[axis] = slice(start, end, jump)
    return tuple(result)


def _slice_attributes(info: KernelInfo) -> KernelFn:
    """ONNX Slice-1."""
    starts, ends, axes = info.attr("starts"), info.attr("ends"), info.attr("axes")
    return lambda x: x[slices_for(x.ndim, starts, ends, axes, None)]


def slice_kernel(info: KernelInfo) -> KernelFn:
    """ONNX Slice-10: everything is an input; what is constant is prepared."""
    positions = range(1, info.n_inputs)
    fixed = [info.constant(i) for i in positions if info.node.inputs[i]]
    rank = getattr(info.input_type(0), "shape", None)
    if rank is not None and all(value is not None for value in fixed):
        lists = [None if (c := info.constant(i)) is None else integers(c) for i in positions]
        padded = (*lists, None, None)[:4]
        slices = slices_for(len(rank), padded[0] or [], padded[1] or [], padded[2], padded[3])
        return lambda x, *_: x[slices]

    def cut(
        x: Array,
        starts: Array,
        ends: Array,
        axes: Array | None = None,
        steps: Array | None = None,
    ) -> Array:
        return x[
            slices_for(
                x.ndim,
                integers(starts),
                integers(ends),
                None if axes is None else integers(axes),
                None if steps is None else integers(steps),
            )
        ]

    return cut


def pad_array(
    x: Array,
    pads: Sequence[int],
    mode: str,
    value: Any,  # noqa: ANN401 - a scalar
    sources: Callable[[int, tuple[int, int], str], Array] | None = None,
) -> Array:
    """ONNX Pad: `pads` is (begin..., end...) for every axis; negative ones crop.

    `sources` may remember what `source_indices` gives.

    Raises:
        ValueError: A wrong count, an unknown mode, or nothing to reflect.
    """
    rank = x.ndim
    if len(pads) != 2 * rank:
        raise ValueError(f"'pads' has {len(pads)} entries for rank {rank}")
    begins, ends = pads[:rank], pads[rank:]
    x = x[
        tuple(
            slice(max(-begin, 0), max(dim - max(-end, 0), 0))
            for begin, end, dim in zip(begins, ends, x.shape, strict=True)
        )
    ]
    widths = [(max(b, 0), max(e, 0)) for b, e in zip(begins, ends, strict=True)]
    sizes = [dim + sum(width) for dim, width in zip(x.shape, widths, strict=True)]
    check_allocation(sizes, x.dtype)
    if mode == "constant":
        result = np.full(sizes, value, x.dtype)
        inner = tuple(slice(b, b + d) for (b, _), d in zip(widths, x.shape, strict=True))
        result[inner] = x
        return result
    if mode not in ("edge", "reflect", "wrap"):
        raise ValueError(f"Pad: mode '{mode}' is not constant, edge, reflect or wrap")
    for axis, width in enumerate(widths):
        if sum(width) and not x.shape[axis]:
            raise ValueError(f"Cannot use '{mode}' mode to pad dimension {axis} of size 0")
        if sum(width):
            x = np.take(x, (sources or source_indices)(x.shape[axis], width, mode), axis)
    return x


def source_indices(size: int, width: tuple[int, int], mode: str) -> Array:
    """For every place of the padded axis, where its element comes from."""
    places = np.arange(-width[0], size + width[1])
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    if mode == "wrap" or size == 1:
        return places % size
    period = 2 * (size - 1)
    places %= period
    return np.minimum(places, period - places)


def _pad_attributes(info: KernelInfo) -> KernelFn:
    """ONNX Pad-1 (`paddings`) and Pad-2 (`pads`)."""
    pads = info.attr("pads" if info.since_version > 1 else "paddings")
    mode, value = info.attr("mode", "constant"), info.attr("value", 0.0)
    return lambda x: pad_array(x, pads, mode, value)


def _pad(info: KernelInfo) -> KernelFn:
    """ONNX Pad-11; from version 18 the pads may be for some axes only."""
    mode = info.attr("mode", "constant")
    sources = lru_cache(maxsize=SIZES)(source_indices)

    def pad(x: Array, pads: Array, value: Array | None = None, axes: Array | None = None) -> Array:
        amounts = integers(pads)
        if axes is not None:
            chosen = [axis_in(a, x.ndim) for a in integers(axes)]
            if len(amounts) != 2 * len(chosen):
                raise ValueError(f"'pads' has {len(amounts)} entries for {len(chosen)} axes")
            full = [0] * (2 * x.ndim)
            for i, axis in enumerate(chosen):
                full[axis] = amounts[i]
                full[axis + x.ndim] = amounts[i + len(chosen)]
            amounts = full
        fill = x.dtype.type(0) if x.dtype != object else ""
        fill = fill if value is None else value.reshape(-1)[0]
        return pad_array(x, amounts, mode, fill, sources)

    return pad


def _center_crop_pad(info: KernelInfo) -> KernelFn:
    """ONNX CenterCropPad-18: the odd element is cut, or added, at the end."""
    axes = info.attr("axes")

    def center_crop_pad(x: Array, shape: Array) -> Array:
        chosen = range(x.ndim) if axes is None else [axis_in(a, x.ndim) for a in axes]
        pads = [0] * (2 * x.ndim)
        for axis, size in zip(chosen, integers(shape), strict=True):
            extra = size - x.shape[axis]
            before = extra // 2 if extra >= 0 else -(-extra // 2)
            pads[axis], pads[axis + x.ndim] = before, extra - before
        return pad_array(x, pads, "constant", x.dtype.type(0))

    return center_crop_pad


def _trilu(info: KernelInfo) -> KernelFn:
    upper = bool(info.attr("upper", 1))

    def trilu(x: Array, k: Array | None = None) -> Array:
        if x.ndim < 2:
            raise ValueError(f"Trilu: rank {x.ndim}, at least 2 is needed")
        rows, columns = x.shape[-2:]
        offset = 0 if k is None else integers(k)[0]
        distance = np.arange(columns) - np.arange(rows)[:, None]
        kept = distance >= offset if upper else distance <= offset
        return np.where(kept, x, x.dtype.type(0))

    return trilu


def _reverse_sequence(info: KernelInfo) -> KernelFn:
    batch_axis, time_axis = info.attr("batch_axis", 1), info.attr("time_axis", 0)

    def reverse(x: Array, lengths: Array) -> Array:
        source = np.moveaxis(x, (batch_axis, time_axis), (0, 1))
        if lengths.shape != source.shape[:1]:
            raise ValueError(f"sequence_lens has shape {lengths.shape}, not {source.shape[:1]}")
        result = np.empty_like(x)
        target = np.moveaxis(result, (batch_axis, time_axis), (0, 1))
        target[...] = source
        for i, length in enumerate(integers(lengths)):
            target[i, :length] = source[i, :length][::-1]
        return result

    return reverse


KERNELS: tuple[KernelDef, ...] = (
    kernel("Slice", since=(1, 1))(_slice_attributes),
    kernel("Slice", since=(10, 13))(slice_kernel),
    kernel("Pad", since=(1, 2))(_pad_attributes),
    kernel("Pad", since=(11, 25))(_pad),
    kernel("CenterCropPad", since=(18, 18))(_center_crop_pad),
    kernel("Trilu", since=(14, 14))(_trilu),
    kernel("ReverseSequence", since=(10, 28))(_reverse_sequence),
)

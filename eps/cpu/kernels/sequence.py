"""Sequences and optionals: lists of tensors, and values that may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import axis_in, check_allocation
from eps.cpu.kernels.shape import integers, parts_of
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo, Value


def _position(position: Array, low: int, high: int) -> int:
    """The place that `position` means.

    Raises:
        IndexError: It is outside [low, high].
    """
    at = integers(position)[0]
    if not low <= at <= high:
        raise IndexError(f"Invalid sequence index ({at}) specified, expected [{low}, {high}]")
    return at


def _at(_: KernelInfo) -> KernelFn:
    def sequence_at(sequence: list[Value], position: Array) -> Value:
        return sequence[_position(position, -len(sequence), len(sequence) - 1)]

    return sequence_at


def _construct(_: KernelInfo) -> KernelFn:
    return lambda *items: list(items)


def _empty(_: KernelInfo) -> KernelFn:
    return list


def _erase(_: KernelInfo) -> KernelFn:
    def erase(sequence: list[Value], position: Array | None = None) -> list[Value]:
        size = len(sequence)
        at = size - 1 if position is None else _position(position, -size, size - 1)
        if not size:
            raise IndexError("SequenceErase of an empty sequence")
        at %= size
        return sequence[:at] + sequence[at + 1 :]

    return erase


def _insert(_: KernelInfo) -> KernelFn:
    def insert(sequence: list[Value], item: Array, position: Array | None = None) -> list[Value]:
        size = len(sequence)
        at = size if position is None else _position(position, -size, size)
        if at < 0:
            at += size
        return [*sequence[:at], item, *sequence[at:]]

    return insert


def _length(_: KernelInfo) -> KernelFn:
    return lambda sequence: np.array(len(sequence), np.int64)


def _concat(info: KernelInfo) -> KernelFn:
    """ONNX ConcatFromSequence-11."""
    axis, new_axis = info.attr("axis"), bool(info.attr("new_axis", 0))

    def concat(items: list[Array]) -> Array:
        if items:  # of one tensor many times perhaps, which takes little room as a sequence
            check_allocation((sum(item.size for item in items),), items[0].dtype)
        return np.stack(items, axis) if new_axis else np.concatenate(items, axis)

    return concat


def _split(info: KernelInfo) -> KernelFn:
    """ONNX SplitToSequence: into single slices, slices of a size, or given sizes."""
    axis, keep = info.attr("axis", 0), bool(info.attr("keepdims", 1))

    def split(x: Array, sizes: Array | None = None) -> list[Array]:
        at = axis_in(axis, x.ndim)
        total = x.shape[at]
        if sizes is None:
            parts = parts_of(x, [1] * total, at)
            return [part if keep else part.squeeze(at) for part in parts]
        if sizes.ndim:
            return list(parts_of(x, integers(sizes), at))
        step = integers(sizes)[0]
        if step <= 0:
            raise ValueError(f"invalid split size {step}")
        starts = range(0, total, step)
        return list(parts_of(x, [min(step, total - start) for start in starts], at))

    return split


def _optional(_: KernelInfo) -> KernelFn:
    """ONNX Optional-15; without an input it makes an empty one."""
    return lambda value=None: value


def _has_element(_: KernelInfo) -> KernelFn:
    return lambda value=None: np.array(value is not None)


def _get_element(_: KernelInfo) -> KernelFn:
    def get_element(value: Value) -> Value:
        if value is None:
            raise ValueError(
                "Trying to use OptionalGetElement on an optional type OrtValue which "
                "contains no data"
            )
        return value

    return get_element


KERNELS: tuple[KernelDef, ...] = (
    kernel("SequenceAt", since=(11, 11))(_at),
    kernel("SequenceConstruct", since=(11, 11))(_construct),
    kernel("SequenceEmpty", since=(11, 11))(_empty),
    kernel("SequenceErase", since=(11, 11))(_erase),
    kernel("SequenceInsert", since=(11, 11))(_insert),
    kernel("SequenceLength", since=(11, 11))(_length),
    kernel("ConcatFromSequence", since=(11, 11))(_concat),
    kernel("SplitToSequence", since=(11, 24))(_split),
    kernel("Optional", since=(15, 28))(_optional),
    kernel("OptionalHasElement", since=(15, 28))(_has_element),
    kernel("OptionalGetElement", since=(15, 28))(_get_element),
)

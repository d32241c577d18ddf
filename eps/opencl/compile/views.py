"""Positions of a tensor's elements: strides over a buffer, and their change by reshaping."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


@dataclass(eq=False, slots=True)
class Storage:
    """A stretch of device memory; compared by identity.

    Attributes:
        size: In elements.
        dtype: numpy's name of the element type.
        constant: Its content, where that is known when compiling.
        geometry: Of a buffer with a border that nothing overwrites; buffers of equal geometry
            may share memory, others may not share theirs.
        border: What each byte of a border holds.
    """

    size: int
    dtype: str
    constant: np.ndarray | None = None
    geometry: tuple[int, ...] = ()
    border: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a buffer by index: offset + sum(index * stride), all in elements."""

    buffer: Storage
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        """Number of elements of the view."""
        return prod(self.shape)

    @property
    def is_plain(self) -> bool:
        """Whether the elements follow each other in row-major order."""
        expected = plain_strides(self.shape)
        return all(
            n == 1 or mine == right
            for n, mine, right in zip(self.shape, self.strides, expected, strict=True)
        )

    def broadcast(self, shape: Sequence[int]) -> View:
        """The view under numpy's broadcasting; new and stretched axes have stride 0."""
        missing = len(shape) - len(self.shape)
        strides = [0] * missing + [
            0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True)
        ]
        return replace(self, shape=tuple(shape), strides=tuple(strides))


def plain_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of row-major order."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def ordered_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides of an array whose axes are stored in `order`, outermost first."""
    strides = [0] * len(shape)
    for axis, stride in zip(order, plain_strides([shape[a] for a in order]), strict=True):
        strides[axis] = stride
    return tuple(strides)


def reshape_view(view: View, shape: tuple[int, ...]) -> View | None:
    """The same elements in the same order under another shape; None if strides cannot say it."""
    strides: list[int] = []
    groups = _runs(view)
    at = len(groups) - 1
    left, step = groups[at] if groups else (1, 1)
    for n in reversed(shape):
        if n == 1:
            strides.append(0)
            continue
        if left == 1:
            at -= 1
            if at < 0:
                return None
            left, step = groups[at]
        if left % n:
            return None
        strides.append(step)
        step *= n
        left //= n
    return View(view.buffer, shape, tuple(reversed(strides)), view.offset)


def _runs(view: View) -> list[tuple[int, int]]:
    """(size, stride) of the axes, neighbours that one stride describes merged."""
    runs: list[tuple[int, int]] = []
    for n, stride in zip(view.shape, view.strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == stride * n:
            runs[-1] = (runs[-1][0] * n, stride)
        else:
            runs.append((n, stride))
    return runs


@dataclass(frozen=True, slots=True)
class Loop:
    """One axis that all operands of a kernel step through together."""

    size: int
    strides: tuple[int, ...]


def common_loops(views: Sequence[View]) -> tuple[Loop, ...]:
    """Loops over views of one shape, outermost first in the first view's order in memory.

    Axes of size 1 are left out, axes that every view can walk as one are merged.
    """
    axes = [
        Loop(n, tuple(view.strides[axis] for view in views))
        for axis, n in enumerate(views[0].shape)
        if n != 1
    ]
    axes.sort(key=lambda loop: -loop.strides[0])
    merged: list[Loop] = []
    for loop in axes:
        outer = merged[-1] if merged else None
        if outer and all(
            a == b * loop.size for a, b in zip(outer.strides, loop.strides, strict=True)
        ):
            merged[-1] = Loop(outer.size * loop.size, loop.strides)
        else:
            merged.append(loop)
    return tuple(merged)

"""Sliding windows over the spatial axes of [N, C, *space]: sizes, padding, views."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.array_pool import LEAST_BYTES
from eps.cpu.arrays import check_allocation, on_last_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.cpu.arrays import Array, DType, Empty
    from ort_lite.ep import KernelInfo

    Convolution = Callable[[Array, Array], Array]
    """Of x [N, C, *space] and w [M, C / group, *kernel]: [N, M, *counts], without bias."""


@dataclass(frozen=True, slots=True)
class AxisWindow:
    """How windows lie along one axis.

    Attributes:
        taps: Elements of a window.
        step: Between the starts of two windows.
        spread: Between two elements of a window (dilation).
        before: Padding in front.
        after: Padding behind, as declared; windows of a ceiling count may reach further.
        size: Elements of the axis.
        count: Windows.
    """

    taps: int
    step: int
    spread: int
    before: int
    after: int
    size: int
    count: int

    @property
    def reach(self) -> int:
        """Padding behind that the last window needs."""
        last = (self.count - 1) * self.step + (self.taps - 1) * self.spread + 1
        return max(last - self.before - self.size, 0) if self.count else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAttributes:
    """The attributes that convolutions and pools have in common; None if not given.

    Attributes:
        cuts_first: Whether a window that is larger than what it lies over is cut off at its end.
    """

    kernel_shape: Sequence[int] | None
    strides: Sequence[int] | None
    dilations: Sequence[int] | None
    pads: Sequence[int] | None
    auto_pad: str
    ceil_mode: bool
    cuts_first: bool = False

    @classmethod
    def of(cls, info: KernelInfo) -> WindowAttributes:
        """Those of a node.

        Raises:
            ValueError: `auto_pad` is none of ONNX's words, or a stride or dilation is not
                positive.
        """
        auto_pad = info.attr("auto_pad", "NOTSET")
        if auto_pad not in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"):
            raise ValueError(f"{info.op_type}: auto_pad is '{auto_pad}'")
        for name in ("strides", "dilations", "kernel_shape"):
            if any(value < 1 for value in info.attr(name) or ()):
                raise ValueError(f"{info.op_type}: {name} {info.attr(name)} are not positive")
        return cls(
            kernel_shape=info.attr("kernel_shape"),
            strides=info.attr("strides"),
            dilations=info.attr("dilations"),
            pads=info.attr("pads"),
            auto_pad=auto_pad,
            ceil_mode=bool(info.attr("ceil_mode", 0)),
            cuts_first=info.op_type.endswith("Pool"),
        )

    def axes(
        self, space: Sequence[int], kernel: Sequence[int] | None = None
    ) -> tuple[AxisWindow, ...]:
        """The windows along each axis of `space`.

        Args:
            space: Sizes of the spatial axes.
            kernel: Taken where the node gives no kernel_shape.

        Raises:
            ValueError: An attribute's length does not fit the rank, or no window fits.
        """
        rank = len(space)
        taps = self.kernel_shape if self.kernel_shape is not None else kernel
        if taps is None:
            raise ValueError("kernel_shape is missing")
        steps = self.strides or [1] * rank
        spreads = self.dilations or [1] * rank
        pads = self.pads or [0] * (2 * rank)
        if not len(taps) == len(steps) == len(spreads) == rank or len(pads) != 2 * rank:
            raise ValueError(
                f"kernel_shape {list(taps)}, strides {list(steps)}, dilations {list(spreads)} "
                f"or pads {list(pads)} do not fit {rank} spatial dimensions"
            )
        return tuple(
            self._axis(space[d], taps[d], steps[d], spreads[d], (pads[d], pads[rank + d]))
            for d in range(rank)
        )

    def _axis(
        self, size: int, taps: int, step: int, spread: int, pads: tuple[int, int]
    ) -> AxisWindow:
        extent = (taps - 1) * spread + 1
        before, after = (0, 0) if self.auto_pad != "NOTSET" else pads
        if self.auto_pad.startswith("SAME"):
            total = max((-(-size // step) - 1) * step + extent - size, 0)
            before = total // 2 if self.auto_pad == "SAME_UPPER" else total - total // 2
            after = total - before
        if min(before, after) < 0:
            raise ValueError(f"padding {before}, {after} is negative")
        room = size + before + after - extent
        # onnxruntime's division of integers rounds towards zero.
        count = room // step + 1 if room >= 0 else 1 - -room // step
        if room < 0 and not (self.cuts_first and count >= 0):
            raise ValueError(
                f"a window of {extent} does not fit into {size} elements and padding "
                f"{before}, {after}"
            )
        if not self.ceil_mode:
            return AxisWindow(taps, step, spread, before, after, size, count)
        count = -(-room // step) + 1
        if count and (count - 1) * step >= size + before:  # such a window would lie in the padding
            count -= 1
        return AxisWindow(taps, step, spread, before, after, size, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding:
    """How far windows reach over the last axes of an array of one shape.

    Attributes:
        shape: With padding.
        inside: The array in it.
        borders: What is around it, one part after the other.
    """

    shape: tuple[int, ...]
    inside: tuple[Any, ...]
    borders: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, shape: Sequence[int], axes: Sequence[AxisWindow]) -> Padding | None:
        """The padding around the last axes of `shape`; None if windows reach nowhere."""
        if all(a.before == 0 and a.reach == 0 for a in axes):
            return None
        outer = shape[: len(shape) - len(axes)]
        inside = [slice(a.before, a.before + a.size) for a in axes]
        borders = [
            on_last_axes([border, *[slice(None)] * (len(axes) - d - 1)])
            for d, axis in enumerate(axes)
            for border in (slice(axis.before), slice(axis.before + axis.size, None))
        ]
        return cls(
            shape=(*outer, *(a.before + a.size + a.reach for a in axes)),
            inside=on_last_axes(inside),
            borders=tuple(borders),
        )

    def pad(self, x: Array, fill: float, empty: Empty) -> Array:
        """`x` with `fill` around it.

        Raises:
            ValueError: The memory for it is not there.
        """
        if x.nbytes < LEAST_BYTES:
            shape = check_allocation(self.shape, x.dtype)
            result = np.full(shape, fill, x.dtype) if fill else np.zeros(shape, x.dtype)
            result[self.inside] = x
            return result
        result = empty(check_allocation(self.shape, x.dtype), x.dtype)
        result[self.inside] = x
        for border in self.borders:
            result[border] = fill
        return result


def pad_space(
    x: Array, axes: Sequence[AxisWindow], fill: float = 0, empty: Empty = np.empty
) -> Array:
    """`x` with `fill` around its last axes, as far as windows reach; `x` itself if nowhere."""
    padding = Padding.of(x.shape, axes)
    return x if padding is None else padding.pad(x, fill, empty)


def pad_axis(x: Array, at: int, axis: AxisWindow, fill: float, empty: Empty = np.empty) -> Array:
    """As `pad_space`, along axis `at` alone."""
    if axis.before == 0 and axis.reach == 0:
        return x
    shape = list(x.shape)
    shape[at] += axis.before + axis.reach
    result = empty(check_allocation(shape, x.dtype), x.dtype)
    whole = (slice(None),) * at
    result[(*whole, slice(axis.before))] = fill
    result[(*whole, slice(axis.before, axis.before + axis.size))] = x
    result[(*whole, slice(axis.before + axis.size, None))] = fill
    return result


def window_view(padded: Array, axes: Sequence[AxisWindow]) -> Array:
    """All windows without copying: [*outer, *taps, *counts], read-only."""
    shape, strides = _window_steps(padded.shape, padded.strides, axes)
    return as_strided(padded, shape, strides, writeable=False)


def _window_steps(
    shape: Sequence[int], strides: Sequence[int], axes: Sequence[AxisWindow]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the windows over an array of that shape and those strides."""
    outer = len(shape) - len(axes)
    steps = (
        *strides[:outer],
        *(strides[outer + d] * a.spread for d, a in enumerate(axes)),
        *(strides[outer + d] * a.step for d, a in enumerate(axes)),
    )
    return (*shape[:outer], *(a.taps for a in axes), *(a.count for a in axes)), steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """All windows over zero-padded arrays of one shape and type, numpy's own float or integer.

    Attributes:
        padding: None if windows reach nowhere.
        shape: [*outer, *taps, *counts].
        strides: In bytes, over an array that is contiguous.
    """

    axes: tuple[AxisWindow, ...]
    padding: Padding | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, shape: Sequence[int], dtype: DType, axes: Sequence[AxisWindow]) -> Windows:
        """Those over the last axes of `shape`."""
        padding = Padding.of(shape, axes)
        padded = shape if padding is None else padding.shape
        steps = [math.prod(padded[d + 1 :]) * dtype.itemsize for d in range(len(padded))]
        window_shape, strides = _window_steps(padded, steps, axes)
        return cls(axes=tuple(axes), padding=padding, shape=window_shape, strides=strides)

    def view_of(self, x: Array, empty: Empty = np.empty) -> Array:
        """A view of `x`, or of its padded copy."""
        padded = x if self.padding is None else self.padding.pad(x, 0, empty)
        if padded.flags.c_contiguous:
            # As as_strided, ten times as fast.
            return np.ndarray(self.shape, padded.dtype, padded, 0, self.strides)
        return window_view(padded, self.axes)

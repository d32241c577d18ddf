"""Products and convolutions as contractions: packed weights, flattened pixels, phases."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass, replace
from eps.opencl.compile.codegen.arithmetic import FLOAT_BITS, arithmetic_of, weights_dtype
from eps.opencl.compile.codegen.group_loads import pack_for_groups
from eps.opencl.compile.codegen.group_tile import write_group_contraction
from eps.opencl.compile.codegen.kernel import Finish, Kernel, finish_of
from eps.opencl.compile.codegen.tile import Contraction, write_contraction
from eps.opencl.compile.codegen.tiling import choose_tiling
from eps.opencl.compile.tilings import GroupTile, Problem
from eps.opencl.compile.views import Storage, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.arithmetic import Arithmetic
    from eps.opencl.compile.ir import Convolution, MatMul, TransposedConvolution
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.compile.tilings import Tile, Tiling
    from eps.opencl.target import Target

    Array = np.ndarray[Any, np.dtype[Any]]


def matmul_kernels(op: MatMul, step: PlacedOp, target: Target) -> list[Kernel]:
    """One contraction; constant right-hand sides are packed."""
    a, b, y = step.inputs[0], step.inputs[1], step.output
    *batch, m, n = y.shape
    k = a.shape[-1]
    constant = b.buffer.constant
    finish = finish_of(op.epilogue, step.inputs, y.shape, 2)
    numbers = arithmetic_of(a, -1, None if constant is None else constant.reshape(b.shape))
    sizes = Problem(
        batch=prod(batch),
        rows=1,
        columns=m,
        taps=(1, 1),
        depth=k,
        width=n,
        packed=constant is not None,
        operands=len(finish.views),
        bits=numbers.bits,
        grouped=target.shares and numbers.bits == FLOAT_BITS,
    )
    tiling = choose_tiling(sizes, numbers.target(target))
    if constant is not None:
        matrix = np.broadcast_to(constant.reshape(b.shape), (*batch, k, n))
        whole = matrix.reshape(-1, 1, 1, k, n)
        packed, each, w_steps = _pack_weights(whole, tiling.tile, (0, 0), numbers, target)
        w = (packed, 0, _choose_packed_batch(batch, each))
    else:
        w = (b.buffer, b.offset, b.strides[:-2])
        w_steps = (0, 0, b.strides[-2], 0)
    spec = Contraction(
        sizes=sizes,
        batch=tuple(batch),
        x=(a.buffer, a.offset, a.strides[:-2]),
        w=w,
        y=(y.buffer, y.offset, y.strides[:-2]),
        x_steps=(0, a.strides[-2], 0, 0, a.strides[-1]),
        w_steps=w_steps,
        y_steps=(0, y.strides[-2], y.strides[-1]),
    )
    views = tuple(_with_row(view) for view in finish.views)
    finish = replace(finish, views=views)
    return _generate_contraction(spec, tiling, finish, numbers, target)


def _generate_contraction(
    spec: Contraction, tiling: Tiling, finish: Finish, numbers: Arithmetic, target: Target
) -> list[Kernel]:
    if isinstance(tiling.tile, GroupTile):
        return write_group_contraction(spec, tiling.tile, tiling.tasks, finish, target)
    return [write_contraction(spec, tiling, finish, target, numbers.sums(spec))]


def _with_row(view: View) -> View:
    """[..., m, n] as [..., 1, m, n]."""
    shape, strides = view.shape, view.strides
    return View(
        view.buffer, (*shape[:-2], 1, *shape[-2:]), (*strides[:-2], 0, *strides[-2:]), view.offset
    )


def _pack_weights(
    weights: Array,
    tile: Tile | GroupTile,
    x_taps: tuple[int, int],
    numbers: Arithmetic,
    target: Target,
) -> tuple[Storage, int, tuple[int, int, int, int]]:
    """[b, i, j, k, n] as the tile's kernel reads it: a buffer, elements of each b, `w_steps`.

    `x_taps` are steps in the input from a tap to the next in a column, and in a row.
    """
    count, kh, kw, depth, width = weights.shape
    channels = tile.channels
    line, panels = depth * channels, -(-width // channels)
    if isinstance(tile, GroupTile):
        packed = pack_for_groups(weights, tile, weights_dtype(weights, half=target.half))
        panel = packed.size // (count * panels)
        each = panels * panel
    elif target.groups is not None and numbers.bits == FLOAT_BITS:
        dtype = weights_dtype(weights, half=target.half)
        packed = np.ascontiguousarray(weights, dtype).reshape(-1)
        panel, channels, line = 0, width, depth * width  # adjacent items load adjacent channels
        each = packed.size // max(count, 1)
    else:
        packed = numbers.pack(weights, tile, target, x_taps)
        line = numbers.line(depth, tile)
        panel = numbers.panel(kh * kw, depth, tile)
        each = panels * panel
    buffer = Storage(packed.size, packed.dtype.name, packed)
    return buffer, each, (kw * line, line, channels, panel)


def _choose_packed_batch(batch: Sequence[int], size: int) -> tuple[int, ...]:
    strides, step = [], size
    for n in reversed(batch):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def convolution_kernels(op: Convolution, step: PlacedOp, target: Target) -> list[Kernel]:
    """A contraction for each group, or in one with flattened pixels for 1 by 1 kernels."""
    x, y = step.inputs[0], step.output
    weights = step.inputs[1].buffer.constant
    assert weights is not None, "lowering takes constant weights"
    weights = weights.reshape(step.inputs[1].shape)
    window = op.window
    finish = finish_of(op.epilogue, step.inputs, y.shape, 2)
    top, left = window.pads[:2]
    start = x.offset - top * x.strides[2] - left * x.strides[3]
    place = _Placed(x, start, y, weights.transpose(2, 3, 1, 0), op.groups, finish)
    return _contract(place, window.strides, window.dilations, target)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Images, the weight [kh, kw, C/groups, O], and where the first window starts."""

    x: View
    start: int
    y: View
    weights: Array
    groups: int
    finish: Finish


def _contract(
    place: _Placed, strides: tuple[int, int], dilations: tuple[int, int], target: Target
) -> list[Kernel]:
    x, y, groups = place.x, place.y, place.groups
    kh, kw, depth, total = place.weights.shape
    width = total // groups
    rows, columns = y.shape[2:]
    x_row, x_column = strides[0] * x.strides[2], strides[1] * x.strides[3]
    views = tuple(_split_groups(view, groups) for view in place.finish.views)
    y_view = _split_groups(y, groups)
    flat = (x_row == x_column * columns or rows == 1) and all(
        v.strides[2] == v.strides[3] * columns or rows == 1 for v in (y_view, *views)
    )
    if flat:
        views = tuple(_flat(v) for v in views)
        rows, columns = 1, rows * columns
    weights, taps = place.weights, (kh, kw)
    if groups == 1 and x.strides[1] == 1 and dilations[1] * x.strides[3] == depth:
        weights = weights.reshape(kh, 1, kw * depth, total)  # a window's columns are one run
        taps, depth = (kh, 1), kw * depth
    numbers = arithmetic_of(x, 1, weights.reshape(*taps, depth, total))
    sizes = Problem(
        batch=x.shape[0] * groups,
        rows=rows,
        columns=columns,
        taps=taps,
        depth=depth,
        width=width,
        packed=True,
        operands=len(views),
        bits=numbers.bits,
        grouped=target.shares and numbers.bits == FLOAT_BITS,
    )
    tiling = choose_tiling(sizes, numbers.target(target))
    by_group = weights.reshape(*taps, depth, groups, width).transpose(3, 0, 1, 2, 4)
    x_taps = dilations[0] * x.strides[2], dilations[1] * x.strides[3]
    packed, each, w_steps = _pack_weights(by_group, tiling.tile, x_taps, numbers, target)
    spec = Contraction(
        sizes=sizes,
        batch=(x.shape[0], groups),
        x=(x.buffer, place.start, (x.strides[0], depth * x.strides[1])),
        w=(packed, 0, (0, each)),
        y=(y.buffer, y.offset, y_view.strides[:2]),
        x_steps=(
            x_row,
            x_column,
            *x_taps,
            x.strides[1],
        ),
        w_steps=w_steps,
        y_steps=(y_view.strides[2], y_view.strides[3], y_view.strides[4]),
    )
    finish = replace(place.finish, views=views)
    return _generate_contraction(spec, tiling, finish, numbers, target)


def _split_groups(view: View, groups: int) -> View:
    """[N, C, H, W] as [N, groups, H, W, C/groups]."""
    n, c, h, w = view.shape
    sn, sc, sh, sw = view.strides
    each = c // groups
    return View(view.buffer, (n, groups, h, w, each), (sn, sc * each, sh, sw, sc), view.offset)


def _flat(view: View) -> View:
    """[N, G, H, W, C] as [N, G, 1, H*W, C]."""
    n, g, h, w, c = view.shape
    step = view.strides[3] if w > 1 else view.strides[2]
    strides = (*view.strides[:2], 0, step, view.strides[4])
    return View(view.buffer, (n, g, 1, h * w, c), strides, view.offset)


def transposed_kernels(op: TransposedConvolution, step: PlacedOp, target: Target) -> list[Kernel]:
    """One convolution for each phase: output pixels that meet the same taps.

    Output row r gets x[i] * w[t] for all i * stride + t * dilation - pad = r: the taps of a
    phase are those with t * dilation = r + pad modulo stride, and i goes down as t goes up.
    """
    weights = step.inputs[1].buffer.constant
    assert weights is not None, "lowering takes constant weights"
    weights = weights.reshape(step.inputs[1].shape)
    finish = finish_of(op.epilogue, step.inputs, step.output.shape, 2)
    kernels = []
    for phase_row in range(op.window.strides[0]):
        for phase_column in range(op.window.strides[1]):
            kernels += _phase(op, step, weights, finish, (phase_row, phase_column), target)
    return kernels


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of a phase: its taps in the order of growing input index."""

    taps: tuple[int, ...]
    first: int
    step: int
    count: int


def _phase(
    op: TransposedConvolution,
    step: PlacedOp,
    weights: Array,
    finish: Finish,
    phase: tuple[int, int],
    target: Target,
) -> list[Kernel]:
    x, y, groups = step.inputs[0], step.output, op.groups
    axes = [_phase_axis(op, a, phase[a], y.shape[2 + a]) for a in (0, 1)]
    if not all(axis.count for axis in axes):
        return []
    channels, each = weights.shape[0], weights.shape[1]
    depth = channels // groups
    picked = weights[:, :, list(axes[0].taps), :][:, :, :, list(axes[1].taps)]
    arranged = picked.reshape(groups, depth, each, *picked.shape[2:]).transpose(3, 4, 1, 0, 2)
    arranged = arranged.reshape(*arranged.shape[:3], groups * each)
    if not arranged.size:  # no tap reaches these pixels: one tap of zeros
        arranged = np.zeros((1, 1, depth, groups * each), np.float32)
    start = x.offset + axes[0].first * x.strides[2] + axes[1].first * x.strides[3]
    place = _Placed(
        x,
        start,
        _phase_view(y, phase, op.window.strides, axes),
        arranged,
        groups,
        replace(
            finish,
            views=tuple(_phase_view(v, phase, op.window.strides, axes) for v in finish.views),
        ),
    )
    return _contract(place, (1, 1), (axes[0].step, axes[1].step), target)


def _phase_axis(op: TransposedConvolution, axis: int, phase: int, size: int) -> _Axis:
    """Taps and first input index for output index `phase`, phase + stride, ..."""
    stride, dilation = op.window.strides[axis], op.window.dilations[axis]
    pad, kernel = op.window.pads[axis], op.window.kernel[axis]
    taps = [t for t in range(kernel) if (phase + pad - t * dilation) % stride == 0]
    sources = [(phase + pad - t * dilation) // stride for t in taps]
    count = len(range(phase, size, stride))
    if not taps:
        return _Axis((), 0, 1, count)
    pairs = sorted(zip(sources, taps, strict=True))
    gap = pairs[1][0] - pairs[0][0] if len(pairs) > 1 else 1
    return _Axis(tuple(t for _, t in pairs), pairs[0][0], gap, count)


def _phase_view(
    view: View, phase: tuple[int, int], strides: tuple[int, int], axes: Sequence[_Axis]
) -> View:
    """The pixels of one phase."""
    n, c = view.shape[:2]
    sn, sc, sh, sw = view.strides
    return View(
        view.buffer,
        (n, c, axes[0].count, axes[1].count),
        (sn, sc, sh * strides[0], sw * strides[1]),
        view.offset + phase[0] * sh + phase[1] * sw,
    )

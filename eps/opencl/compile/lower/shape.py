"""Data movement: most of it is another way to see the same elements."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.ir import (
    Concat,
    Fill,
    Gather,
    GatherND,
    IrTensor,
    Sample,
    Slice,
    Stretch,
    Unsupported,
)
from eps.opencl.compile.lower.dense import transpose
from eps.opencl.compile.lower.node import (
    NodeView,
    broadcast_shape,
    constant,
    normal_axis,
    require_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Result = IrTensor | Sequence[IrTensor]


def _reshape(node: NodeView) -> IrTensor:
    x = node.input(0)
    if node.opset < 5:
        shape = [int(v) for v in node.attr("shape")]
    else:
        shape = list(node.integers(1, "the new shape"))
    if not node.attr("allowzero", 0):
        shape = [x.shape[i] if n == 0 and i < len(x.shape) else n for i, n in enumerate(shape)]
    known = prod(n for n in shape if n != -1)
    if -1 in shape:
        if not known or x.size % known:
            raise Unsupported(f"{x.shape} does not reshape to {shape}")
        shape[shape.index(-1)] = x.size // known
    if prod(shape) != x.size:
        raise Unsupported(f"{x.shape} does not reshape to {shape}")
    return node.reshape(x, shape)


def _flatten(node: NodeView) -> IrTensor:
    x, axis = node.input(0), node.attr("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    return node.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


def _axes(node: NodeView, rank: int) -> tuple[int, ...] | None:
    axes = node.attr("axes")
    if axes is None and node.has(1):
        axes = node.integers(1, "axes")
    return None if axes is None else tuple(normal_axis(int(a), rank) for a in axes)


def _squeeze(node: NodeView) -> IrTensor:
    x = node.input(0)
    axes = _axes(node, len(x.shape))
    if axes is None:
        axes = tuple(a for a, n in enumerate(x.shape) if n == 1)
    return node.reshape(x, [n for a, n in enumerate(x.shape) if a not in axes])


def _unsqueeze(node: NodeView) -> IrTensor:
    x = node.input(0)
    positions = node.attr("axes") or node.integers(1, "axes")
    rank = len(x.shape) + len(positions)
    axes = {normal_axis(int(a), rank) for a in positions}
    sizes = iter(x.shape)
    return node.reshape(x, [1 if a in axes else next(sizes) for a in range(rank)])


def _transpose(node: NodeView) -> IrTensor:
    x = node.input(0)
    axes = node.attr("perm") or list(reversed(range(len(x.shape))))
    return transpose(node, x, [int(a) for a in axes])


def _slice(node: NodeView) -> IrTensor:
    x = node.input(0)
    if node.opset < 10:
        starts, ends = list(node.attr("starts")), list(node.attr("ends"))
        axes = list(node.attr("axes", range(len(starts))))
        steps = [1] * len(starts)
    else:
        starts, ends = list(node.integers(1, "starts")), list(node.integers(2, "ends"))
        axes = list(node.integers(3, "axes")) if node.has(3) else list(range(len(starts)))
        steps = list(node.integers(4, "steps")) if node.has(4) else [1] * len(starts)
    picked = [slice(None)] * len(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = normal_axis(axis, len(x.shape))
        stop = None if step < 0 and end < -x.shape[at] else end
        picked[at] = slice(start, stop, step)
    return slice_tensor(node, x, picked)


def slice_tensor(node: NodeView, x: IrTensor, picked: Sequence[slice]) -> IrTensor:
    """numpy's basic slicing."""
    if x.constant is not None:
        return constant(x.constant[tuple(picked)])
    ranges = [range(*s.indices(n)) for s, n in zip(picked, x.shape, strict=True)]
    shape = tuple(len(r) for r in ranges)
    if shape == x.shape and all(r.step == 1 for r in ranges):
        return x
    starts = tuple(r.start if len(r) else 0 for r in ranges)
    return node.alias(x, Slice(starts, tuple(r.step for r in ranges), shape), shape)


def _split(node: NodeView) -> list[IrTensor]:
    x = node.input(0)
    axis = normal_axis(node.attr("axis", 0), len(x.shape))
    count, n = len(node.node.outputs), x.shape[axis]
    sizes = node.attr("split")
    if sizes is None and node.has(1):
        sizes = node.integers(1, "the sizes of a split")
    if sizes is None:
        chunk = -(-n // count)
        sizes = [min(chunk, n - i * chunk) for i in range(count)]
    if sum(sizes) != n or len(sizes) != count or min(sizes) < 0:
        raise Unsupported(f"{n} elements do not split into {list(sizes)}")
    results, at = [], 0
    for size in sizes:
        picked = [slice(None)] * len(x.shape)
        picked[axis] = slice(at, at + int(size))
        results.append(slice_tensor(node, x, picked))
        at += int(size)
    return results


def _concat(node: NodeView) -> IrTensor:
    inputs = node.present_inputs()
    axis = normal_axis(node.attr("axis", 1), len(inputs[0].shape))
    inputs = [x for x in inputs if x.shape[axis]] or inputs[:1]
    if len(inputs) == 1:
        return inputs[0]
    for x in inputs:
        require_type(x.dtype)
    shape = list(inputs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in inputs)
    for x in inputs:
        if [n for a, n in enumerate(x.shape) if a != axis] != [
            n for a, n in enumerate(shape) if a != axis
        ]:
            raise Unsupported(f"shapes {[x.shape for x in inputs]} do not join")
    output = IrTensor(tuple(shape), inputs[0].dtype)
    node.emit(Concat(tuple(inputs), output, axis))
    return output


def _expand(node: NodeView) -> IrTensor:
    x = node.input(0)
    shape = broadcast_shape(x.shape, node.integers(1, "the new shape"))
    return x if shape == x.shape else node.alias(x, Stretch(shape), shape)


def _tile(node: NodeView) -> IrTensor:
    """[a, b] repeated (m, n) times is [m, a, n, b] stretched, seen as [m*a, n*b]."""
    x, repeats = node.input(0), node.integers(1, "the repeats")
    if len(repeats) != len(x.shape):
        raise Unsupported("repeats of another rank")
    if all(r == 1 for r in repeats):
        return x
    apart = node.reshape(x, [v for n in x.shape for v in (1, n)])
    stretched = tuple(v for r, n in zip(repeats, x.shape, strict=True) for v in (r, n))
    wide = node.alias(apart, Stretch(stretched), stretched)
    return node.reshape(wide, [r * n for r, n in zip(repeats, x.shape, strict=True)])


def _pad(node: NodeView) -> IrTensor:
    x = node.input(0)
    require_type(x.dtype)
    mode = node.attr("mode", "constant")
    rank = len(x.shape)
    if node.opset < 11:
        pads = [int(v) for v in node.attr("pads") or node.attr("paddings")]
        value = node.attr("value", 0.0)
    else:
        pads = list(node.integers(1, "the pads"))
        value = node.constant(2, "the padding").reshape(-1)[0].item() if node.has(2) else 0
    begins, ends = [0] * rank, [0] * rank
    axes = node.integers(3, "axes") if node.has(3) else range(rank)
    for i, axis in enumerate(axes):
        at = normal_axis(int(axis), rank)
        begins[at], ends[at] = pads[i], pads[i + len(pads) // 2]
    if mode != "constant":
        return _pad_reflected(node, x, (begins, ends), mode)
    x = slice_tensor(
        node,
        x,
        [slice(max(-b, 0), n - max(-e, 0)) for b, e, n in zip(begins, ends, x.shape, strict=True)],
    )
    begins, ends = [max(b, 0) for b in begins], [max(e, 0) for e in ends]
    shape = tuple(n + b + e for n, b, e in zip(x.shape, begins, ends, strict=True))
    if shape == x.shape:
        return x
    output = IrTensor(shape, x.dtype)
    node.emit(Fill((x,), output, tuple(begins), value))
    return output


def _pad_reflected(
    node: NodeView, x: IrTensor, pads: tuple[Sequence[int], Sequence[int]], mode: str
) -> IrTensor:
    """Padding with what the tensor has itself: each axis reads other indices."""
    node.require_float32(0)
    if min(*pads[0], *pads[1]) < 0 or mode not in ("edge", "reflect", "wrap"):
        raise Unsupported(f"Pad in mode {mode} with pads {pads}")
    sources = []
    for n, before, after in zip(x.shape, *pads, strict=True):
        at = np.arange(n)
        if before or after:
            at = np.pad(at, (before, after), mode)  # type: ignore[call-overload]
        sources.append(tuple((int(i),) for i in at))
    output = IrTensor(tuple(len(s) for s in sources), x.dtype)
    weights = tuple(tuple((1.0,) for _ in s) for s in sources)
    node.emit(Sample((x,), output, tuple(sources), weights))
    return output


def _shape(node: NodeView) -> IrTensor:
    shape = node.input(0).shape
    picked = shape[node.attr("start", 0) : node.attr("end", len(shape))]
    return constant(np.array(picked, np.int64))


def _size(node: NodeView) -> IrTensor:
    return constant(np.array(node.input(0).size, np.int64))


def _gather(node: NodeView) -> IrTensor:
    data, indices = node.input(0), node.input(1)
    axis = normal_axis(node.attr("axis", 0), len(data.shape))
    if indices.constant is not None and indices.size == 1:
        at = int(indices.constant.reshape(-1)[0])
        n = data.shape[axis]
        if not -n <= at < n:
            raise Unsupported(f"index {at} of {n}")
        picked = [slice(None)] * len(data.shape)
        picked[axis] = slice(at % n, at % n + 1)
        shape = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
        return node.reshape(slice_tensor(node, data, picked), shape)
    require_type(data.dtype)
    if indices.dtype not in ("int32", "int64"):
        raise Unsupported(f"indices of type {indices.dtype}")
    output = IrTensor((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), data.dtype)
    if output.size and not data.shape[axis]:
        raise Unsupported("a choice from nothing")
    node.emit(Gather((data, indices), output, axis))
    return output


def _gather_nd(node: NodeView) -> IrTensor:
    data, indices, batch = node.input(0), node.input(1), node.attr("batch_dims", 0)
    require_type(data.dtype)
    if indices.dtype != "int64" or not indices.shape or not indices.shape[-1]:
        raise Unsupported(f"indices {indices.dtype}{list(indices.shape)}")
    shape = (*indices.shape[:-1], *data.shape[batch + indices.shape[-1] :])
    output = IrTensor(shape, data.dtype)
    node.emit(GatherND((data, indices), output, batch))
    return output


def _depth_to_space(node: NodeView) -> IrTensor:
    x, b = node.input(0), node.required_int("blocksize")
    n, c, h, w = x.shape
    if node.attr("mode", "DCR") == "DCR":
        apart = node.reshape(x, (n, b, b, c // (b * b), h, w))
        moved = transpose(node, apart, (0, 3, 4, 1, 5, 2))
    else:
        apart = node.reshape(x, (n, c // (b * b), b, b, h, w))
        moved = transpose(node, apart, (0, 1, 4, 2, 5, 3))
    return node.reshape(moved, (n, c // (b * b), h * b, w * b))


def _space_to_depth(node: NodeView) -> IrTensor:
    x, b = node.input(0), node.required_int("blocksize")
    n, c, h, w = x.shape
    apart = node.reshape(x, (n, c, h // b, b, w // b, b))
    axes = (0, 3, 5, 1, 2, 4) if node.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return node.reshape(transpose(node, apart, axes), (n, c * b * b, h // b, w // b))


LOWERINGS: Mapping[str, Callable[[NodeView], Result]] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Slice": _slice,
    "Split": _split,
    "Concat": _concat,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    "Shape": _shape,
    "Size": _size,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}

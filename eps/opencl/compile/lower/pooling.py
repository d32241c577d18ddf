"""Pooling, reductions, softmax and normalisation."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.ir import IrTensor, LayerNorm, Pool, Reduce, Softmax, Unsupported
from eps.opencl.compile.lower.node import (
    NodeView,
    broadcast_shape,
    call,
    constant,
    normal_axis,
    number,
)
from eps.opencl.compile.lower.windows import pair, window_output, window_over

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def _pool(kind: str) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        node.require_float32(0)
        source = node.input(0)
        if len([o for o in node.node.outputs if o]) > 1:
            raise Unsupported("indices of a maximum")
        if len(source.shape) not in (3, 4):
            raise Unsupported(f"pooling of rank {len(source.shape)}")
        x = source if len(source.shape) == 4 else node.reshape(source, (*source.shape[:2], 1, -1))
        if len(source.shape) == 3:
            x = node.reshape(source, (*source.shape[:2], 1, source.shape[2]))
        window = window_over(node, x, pair(node, "kernel_shape", 1))
        ceil = bool(node.attr("ceil_mode", 0))
        rows, columns = window_output(x.shape, window, ceil=ceil)
        output = IrTensor((*x.shape[:2], rows, columns), "float32")
        count_pads = bool(node.attr("count_include_pad", 0))
        if count_pads and ceil:
            raise Unsupported("count_include_pad with ceil_mode")
        if max(window.pads) and kind == "max" and min(window.kernel) <= max(window.pads):
            raise Unsupported("padding as large as the window")
        node.emit(Pool((x,), output, window, kind, count_pads))
        if len(source.shape) == 3:
            return node.reshape(output, (*output.shape[:2], columns))
        return output

    return lower


def _global_pool(kind: str) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        node.require_float32(0)
        x = node.input(0)
        return reduce_axes(node, x, kind, range(2, len(x.shape)))

    return lower


def reduce_axes(node: NodeView, x: IrTensor, kind: str, axes: Sequence[int]) -> IrTensor:
    """A reduction that keeps the axes."""
    axes = tuple(axes)
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    if not x.size:
        raise Unsupported("a reduction of nothing")
    output = IrTensor(shape, x.dtype)
    node.emit(Reduce((x,), output, kind, axes))
    return output


def _reduce(kind: str, before: str = "", after: str = "") -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        x = node.input(0)
        if x.dtype != "float32" and (before or after or kind == "mean" or x.dtype == "bool"):
            raise Unsupported(f"{node.node.op_type} of {x.dtype}")
        axes = _read_axes(node, len(x.shape))
        if axes is None:
            return x
        keep = node.attr("keepdims", 1)
        if before == "square":
            x = node.pointwise(lambda a: call("mul", a, a), [x])
        elif before:
            x = node.pointwise(lambda a: call(before, a), [x])
        result = reduce_axes(node, x, kind, axes)
        if after:
            result = node.pointwise(lambda a: call(after, a), [result])
        if keep:
            return result
        return node.reshape(result, [n for a, n in enumerate(result.shape) if a not in axes])

    return lower


def _read_axes(node: NodeView, rank: int) -> tuple[int, ...] | None:
    """Normal axes; None for "nothing to do"."""
    axes = node.attr("axes")
    if axes is None and node.has(1):
        axes = list(node.integers(1, "axes"))
    if not axes:
        return None if node.attr("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted(normal_axis(int(a), rank) for a in axes))


def _softmax(*, log: bool) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        node.require_float32(0)
        x = node.input(0)
        rank = len(x.shape)
        if not rank:
            raise Unsupported("softmax of a scalar")
        if node.opset >= 13:
            return _softmax_of(node, x, normal_axis(node.attr("axis", -1), rank), log=log)
        axis = normal_axis(node.attr("axis", 1), rank)
        if axis == rank - 1 or all(n == 1 for n in x.shape[axis + 1 :]):
            return _softmax_of(node, x, axis, log=log)
        flat = node.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
        return node.reshape(_softmax_of(node, flat, 1, log=log), x.shape)

    return lower


def _softmax_of(node: NodeView, x: IrTensor, axis: int, *, log: bool) -> IrTensor:
    output = IrTensor(x.shape, "float32")
    node.emit(Softmax((x,), output, axis, log))
    return output


def _layer_norm(*, rms: bool) -> Callable[[NodeView], IrTensor]:
    def lower(node: NodeView) -> IrTensor:
        x = node.input(0)
        node.require_float32(*(i for i in range(len(node.inputs)) if node.has(i)))
        if len([o for o in node.node.outputs if o]) > 1:
            raise Unsupported("mean and deviation as outputs")
        axis = normal_axis(node.attr("axis", -1), len(x.shape))
        if not x.size:
            raise Unsupported("normalisation of nothing")
        output = IrTensor(x.shape, "float32")
        ends, count = x.shape[axis:], prod(x.shape[axis:])
        weights = [node.constant(i, "a weight of the normalisation") for i in (1, 2) if node.has(i)]
        if broadcast_shape(ends, *(w.shape for w in weights)) != ends:
            raise Unsupported(f"weights of a normalisation that are larger than {list(ends)}")
        flat = [
            constant(np.broadcast_to(w, ends).reshape(count).astype(np.float32)) for w in weights
        ]
        epsilon = node.attr("epsilon", 1e-5)
        node.emit(LayerNorm((x, *flat), output, count, epsilon, rms))
        return output

    return lower


def _instance_norm(node: NodeView) -> IrTensor:
    node.require_float32(0, 1, 2)
    x = node.input(0)
    axes = tuple(range(2, len(x.shape)))
    shape = (-1, *(1,) * len(axes))
    scale, bias = (
        constant(node.constant(i, "a weight of the normalisation").reshape(shape)) for i in (1, 2)
    )
    return _standardise_scaled(node, x, axes, scale, bias)


def _standardise_scaled(
    node: NodeView, x: IrTensor, axes: Sequence[int], scale: IrTensor, bias: IrTensor
) -> IrTensor:
    epsilon = node.attr("epsilon", 1e-5)
    mean = reduce_axes(node, x, "mean", axes)
    centred = node.pointwise(lambda a, m: call("sub", a, m), [x, mean])
    square = node.pointwise(lambda a: call("mul", a, a), [centred])
    variance = reduce_axes(node, square, "mean", axes)
    return node.pointwise(
        lambda a, v, s, b: call(
            "fma", call("mul", a, call("rsqrt", call("add", v, number(epsilon, v)))), s, b
        ),
        [centred, variance, scale, bias],
    )


LOWERINGS: Mapping[str, Callable[[NodeView], IrTensor]] = {
    "MaxPool": _pool("max"),
    "AveragePool": _pool("mean"),
    "GlobalAveragePool": _global_pool("mean"),
    "GlobalMaxPool": _global_pool("max"),
    "ReduceSum": _reduce("sum"),
    "ReduceMean": _reduce("mean"),
    "ReduceMax": _reduce("max"),
    "ReduceMin": _reduce("min"),
    "ReduceProd": _reduce("prod"),
    "ReduceL1": _reduce("sum", before="abs"),
    "ReduceL2": _reduce("sum", before="square", after="sqrt"),
    "ReduceSumSquare": _reduce("sum", before="square"),
    "ReduceLogSum": _reduce("sum", after="log"),
    "Softmax": _softmax(log=False),
    "LogSoftmax": _softmax(log=True),
    "LayerNormalization": _layer_norm(rms=False),
    "RMSNormalization": _layer_norm(rms=True),
    "InstanceNormalization": _instance_norm,
}

"""Normalisations and norms, put together from reductions and elementwise operations."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.ir import IrTensor, Pool, Unsupported, Window
from eps.opencl.compile.lower.dense import product
from eps.opencl.compile.lower.node import NodeView, call, constant, normal_axis, number
from eps.opencl.compile.lower.pooling import reduce_axes
from eps.opencl.compile.lower.windows import explicit_pads, pair, window_output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.expression import Expr

    Result = IrTensor | Sequence[IrTensor]

MVN_EPSILON = 1e-9
"""ONNX MeanVarianceNormalization-13 adds it to the deviation."""


def standardise(node: NodeView, x: IrTensor, axes: Sequence[int], epsilon: float) -> IrTensor:
    """(x - mean) / sqrt(variance + epsilon) over `axes`."""
    mean = reduce_axes(node, x, "mean", axes)
    centred = node.pointwise(lambda a, m: call("sub", a, m), [x, mean])
    square = node.pointwise(lambda a: call("mul", a, a), [centred])
    variance = reduce_axes(node, square, "mean", axes)
    return node.pointwise(
        lambda a, v: call("mul", a, call("rsqrt", call("add", v, number(epsilon, v)))),
        [centred, variance],
    )


def _group_norm(node: NodeView) -> IrTensor:
    x, scale, bias = node.input(0), node.input(1), node.input(2)
    node.require_float32(0, 1, 2)
    groups = node.required_int("num_groups")
    n, channels = x.shape[:2]
    if groups < 1 or channels % groups:
        raise Unsupported(f"{channels} channels in {groups} groups")
    flat = node.reshape(x, (n, groups, x.size // (n * groups)))
    inner = standardise(node, flat, (2,), node.attr("epsilon", 1e-5))
    each = groups if node.opset < 21 else channels
    apart = node.reshape(inner, (n, each, x.size // (n * each)))
    weights = [node.reshape(w, (1, each, 1)) for w in (scale, bias)]
    result = node.pointwise(lambda a, s, b: call("fma", a, s, b), [apart, *weights])
    return node.reshape(result, x.shape)


def _mean_variance(node: NodeView) -> IrTensor:
    x = node.input(0)
    node.require_float32(0)
    axes = tuple(normal_axis(int(a), len(x.shape)) for a in node.attr("axes", (0, 2, 3)))
    mean = reduce_axes(node, x, "mean", axes)
    centred = node.pointwise(lambda a, m: call("sub", a, m), [x, mean])
    square = node.pointwise(lambda a: call("mul", a, a), [centred])
    variance = reduce_axes(node, square, "mean", axes)
    return node.pointwise(
        lambda a, v: call("div", a, call("add", call("sqrt", v), number(MVN_EPSILON, v))),
        [centred, variance],
    )


def _raise_power(a: Expr, p: int) -> Expr:
    if p == 2:
        return call("mul", a, a)
    return call("abs", a) if p == 1 else call("pow", call("abs", a), number(p, a))


def _root(a: Expr, p: int) -> Expr:
    if p == 2:
        return call("sqrt", a)
    return a if p == 1 else call("pow", a, number(1 / p, a))


def _norm(node: NodeView, x: IrTensor, p: int, axes: Sequence[int]) -> IrTensor:
    raised = node.pointwise(lambda a: _raise_power(a, p), [x])
    total = reduce_axes(node, raised, "sum", axes)
    return node.pointwise(lambda a: _root(a, p), [total])


def _lp_norm(node: NodeView) -> IrTensor:
    """A norm of zero divides as in numpy; ONNX's reference gives zero there, and so do we."""
    x, p = node.input(0), int(node.attr("p", 2))
    node.require_float32(0)
    norm = _norm(node, x, p, (normal_axis(node.attr("axis", -1), len(x.shape)),))

    def divide(a: Expr, n: Expr) -> Expr:
        empty = call("eq", n, number(0, n), dtype="bool")
        return call("where", empty, number(0, a), call("div", a, n), dtype=a.dtype)

    return node.pointwise(divide, [x, norm])


def _global_lp_pool(node: NodeView) -> IrTensor:
    x = node.input(0)
    node.require_float32(0)
    return _norm(node, x, int(node.attr("p", 2)), range(2, len(x.shape)))


def _lp_pool(node: NodeView) -> IrTensor:
    """The sum over a window is its mean, padding counted, times its size."""
    source, p = node.input(0), int(node.attr("p", 2))
    node.require_float32(0)
    if len(source.shape) not in (3, 4):
        raise Unsupported(f"pooling of rank {len(source.shape)}")
    if node.attr("auto_pad", "NOTSET") != "NOTSET" or node.attr("ceil_mode", 0):
        raise Unsupported("LpPool with auto_pad or ceil_mode")
    x = source
    if len(source.shape) == 3:
        x = node.reshape(source, (*source.shape[:2], 1, source.shape[2]))
    window = Window(
        kernel=pair(node, "kernel_shape", 1),
        strides=pair(node, "strides", 1),
        dilations=pair(node, "dilations", 1),
        pads=explicit_pads(node, node.attr("pads")),
    )
    rows, columns = window_output(x.shape, window)
    raised = node.pointwise(lambda a: _raise_power(a, p), [x])
    means = IrTensor((*x.shape[:2], rows, columns), "float32")
    node.emit(Pool((raised,), means, window, "mean", True))  # noqa: FBT003 - count_pads
    size = prod(window.kernel)
    result = node.pointwise(lambda a: _root(call("mul", a, number(size, a)), p), [means])
    return node.reshape(result, (*source.shape[:2], columns)) if x is not source else result


def _local_response(node: NodeView) -> IrTensor:
    """The sum over neighbouring channels is a product with a band of ones."""
    x, size = node.input(0), node.required_int("size")
    node.require_float32(0)
    if len(x.shape) < 3:
        raise Unsupported(f"LRN of rank {len(x.shape)}")
    alpha, beta, bias = node.attr("alpha", 1e-4), node.attr("beta", 0.75), node.attr("bias", 1.0)
    n, channels = x.shape[:2]
    flat = node.reshape(x, (n, channels, prod(x.shape[2:])))
    square = node.pointwise(lambda a: call("mul", a, a), [flat])
    away = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    band = (away >= -((size - 1) // 2)) & (away <= size // 2)
    whole = np.broadcast_to(band.astype(np.float32), (n, channels, channels))
    sums = product(node, constant(whole), square)

    def scale(a: Expr, s: Expr) -> Expr:
        base = call("fma", s, number(alpha / size, s), number(bias, s))
        return call("div", a, call("pow", base, number(beta, s)))

    return node.reshape(node.pointwise(scale, [flat, sums]), x.shape)


def _log_sum_exp(node: NodeView) -> IrTensor:
    """Of what is left after the maximum is taken off, so that nothing overflows."""
    x = node.input(0)
    node.require_float32(0)
    attribute = node.attr("axes")
    if attribute is None and node.has(1):
        attribute = node.integers(1, "axes")
    if not attribute and node.attr("noop_with_empty_axes", 0):
        return x
    rank = len(x.shape)
    axes = tuple(sorted(normal_axis(int(a), rank) for a in attribute)) if attribute else range(rank)
    top = reduce_axes(node, x, "max", axes)
    # an infinite maximum taken off would leave NaN
    finite = node.pointwise(_finite, [top])
    small = node.pointwise(lambda a, t: call("exp", call("sub", a, t)), [x, finite])
    total = reduce_axes(node, small, "sum", axes)
    result = node.pointwise(lambda s, t: call("add", call("log", s), t), [total, finite])
    if node.attr("keepdims", 1):
        return result
    return node.reshape(result, [n for a, n in enumerate(x.shape) if a not in axes])


def _finite(a: Expr) -> Expr:
    return call("where", call("isinf", a, dtype="bool"), number(0, a), a, dtype=a.dtype)


def _dropout(node: NodeView) -> list[IrTensor]:
    """In inference nothing is dropped, and the mask is all true."""
    if node.has(2) and node.constant(2, "training_mode").reshape(-1)[0]:
        raise Unsupported("Dropout in training")
    if node.opset < 7 and not node.attr("is_test", 0):
        raise Unsupported("Dropout in training")
    x = node.input(0)
    has_mask = len([name for name in node.node.outputs if name]) > 1
    if has_mask and node.opset < 10:
        raise Unsupported("a mask as before opset 10")
    return [x, constant(np.ones(x.shape, np.bool_))] if has_mask else [x]


def _bit_shift(node: NodeView) -> IrTensor:
    """By all bits or more nothing but the sign is left; OpenCL takes the count modulo the width.

    ONNX BitShift-28: a negative count is one that large, a right shift keeps the sign.
    """
    x = node.input(0)
    name = "shl" if node.attr("direction") == "LEFT" else "shr"
    width = 8 * np.dtype(x.dtype).itemsize

    def write(a: Expr, count: Expr) -> Expr:
        zero = number(0, a)
        rest: Expr = zero
        inside: Expr = call("lt", count, number(width, count), dtype="bool")
        if not x.dtype.startswith("u"):
            positive = call("ge", count, number(0, count), dtype="bool")
            inside = call("and", inside, positive, dtype="bool")
            if name == "shr":
                below = call("lt", a, zero, dtype="bool")
                rest = call("where", below, number(-1, a), zero, dtype=a.dtype)
        return call("where", inside, call(name, a, count), rest, dtype=a.dtype)

    return node.pointwise(write, [x, node.input(1)])


LOWERINGS: Mapping[str, Callable[[NodeView], Result]] = {
    "GroupNormalization": _group_norm,
    "MeanVarianceNormalization": _mean_variance,
    "LpNormalization": _lp_norm,
    "GlobalLpPool": _global_lp_pool,
    "LpPool": _lp_pool,
    "LRN": _local_response,
    "ReduceLogSumExp": _log_sum_exp,
    "Dropout": _dropout,
    "BitShift": _bit_shift,
}

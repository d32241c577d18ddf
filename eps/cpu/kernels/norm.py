"""Normalisations over the last axes, over space, over channel groups."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import (
    FLOAT64,
    Array,
    axis_in,
    computing_wide,
    is_narrow_float,
    outer_checked,
    widen_floats,
)
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from ort_lite.ep import KernelFn, KernelInfo


def standardize_rows(rows: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """Rows of [n, m] shifted and scaled to mean 0 and variance 1.

    Returns:
        The rows, their means [n, 1], and 1 / sqrt(variance + epsilon) [n, 1].
    """
    mean = np.add.reduce(rows, 1, keepdims=True)
    mean /= rows.shape[1]
    result = rows - mean
    inverse = np.vecdot(result, result)[:, None]
    inverse /= rows.shape[1]
    inverse += epsilon
    np.sqrt(inverse, out=inverse)
    np.reciprocal(inverse, out=inverse)
    result *= inverse
    return result, mean, inverse


def _rows(x: Array, axis: int) -> Array:
    """`x` with everything from `axis` on in one dimension, and all before it in another."""
    split = axis_in(axis, x.ndim)
    return x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))


def layer_norm(
    x: Array, scale: Array, bias: Array | None, axis: int, epsilon: float
) -> tuple[Array, Array, Array]:
    """ONNX LayerNormalization-17; mean and inverse deviation keep the reduced axes as 1."""
    wide = widen_floats(x)
    result, mean, inverse = standardize_rows(_rows(wide, axis), epsilon)
    y = result.reshape(x.shape)
    y = _scale_and_shift(y, scale, bias)
    kept = x.shape[: axis_in(axis, x.ndim)] + (1,) * (x.ndim - axis_in(axis, x.ndim))
    return y.astype(x.dtype, copy=False), mean.reshape(kept), inverse.reshape(kept)


def _scale_and_shift(y: Array, scale: Array, bias: Array | None) -> Array:
    """y * scale + bias, in place of `y` where the shapes allow it."""
    if np.broadcast_shapes(y.shape, scale.shape) == y.shape:
        y *= widen_floats(scale)
    else:
        y = outer_checked(np.multiply)(y, widen_floats(scale))
    if bias is not None:
        y += widen_floats(bias)
    return y


def _layer_norm(info: KernelInfo) -> KernelFn:
    axis, epsilon = info.attr("axis", -1), float(info.attr("epsilon", 1e-5))
    if not (info.is_output_used(1) or info.is_output_used(2)):
        return lambda x, scale, bias=None: layer_norm(x, scale, bias, axis, epsilon)[0]
    return lambda x, scale, bias=None: layer_norm(x, scale, bias, axis, epsilon)


def rms_norm(x: Array, scale: Array, axis: int, epsilon: float) -> Array:
    """x / sqrt(mean(x^2) + epsilon) * scale: ONNX RMSNormalization-23."""
    rows = _rows(widen_floats(x), axis)
    square = np.vecdot(rows, rows)[:, None]
    square /= rows.shape[1]
    square += epsilon
    result = (rows / np.sqrt(square)).reshape(x.shape)
    return _scale_and_shift(result, scale, None).astype(x.dtype, copy=False)


def _rms_norm(info: KernelInfo) -> KernelFn:
    axis, epsilon = info.attr("axis", -1), float(info.attr("epsilon", 1e-5))

    def run(x: Array, scale: Array) -> Array:
        return rms_norm(x, scale, axis, epsilon).astype(scale.dtype, copy=False)

    return run


def group_norm(x: Array, groups: int, scale: Array, bias: Array, epsilon: float) -> Array:
    """Standardised within each of `groups` channel groups of [N, C, *space]; then scaled.

    Raises:
        ValueError: C is not a multiple of `groups`.
    """
    batch, channels = x.shape[:2]
    if groups <= 0 or channels % groups:
        raise ValueError(f"{channels} channels cannot be parted into {groups} groups")
    size = math.prod(x.shape[2:])
    rows = x.reshape(batch * groups, channels // groups * size)
    result, _, _ = standardize_rows(rows, epsilon)
    result = result.reshape(batch, channels, size)
    result *= scale[:, None]
    result += bias[:, None]
    return result.reshape(x.shape)


def _group_norm(info: KernelInfo) -> KernelFn:
    """ONNX GroupNormalization; version 18 has one scale a group, 21 one a channel."""
    groups, epsilon = info.attr("num_groups"), float(info.attr("epsilon", 1e-5))
    by_group = info.since_version < 21

    def run(x: Array, scale: Array, bias: Array) -> Array:
        if by_group:
            each = x.shape[1] // groups
            scale, bias = np.repeat(scale, each), np.repeat(bias, each)
        return group_norm(x, groups, scale, bias, epsilon)

    return computing_wide(info, run)


def _instance_norm(info: KernelInfo) -> KernelFn:
    epsilon = float(info.attr("epsilon", 1e-5))
    return computing_wide(
        info, lambda x, scale, bias: group_norm(x, x.shape[1], scale, bias, epsilon)
    )


def _mean_variance_norm(info: KernelInfo) -> KernelFn:
    """(x - mean) / (deviation + 1e-9) over `axes`: the function of ONNX 9 and 13."""
    axes = tuple(info.attr("axes", [0, 2, 3]))

    def run(x: Array) -> Array:
        mean = np.mean(x, axis=axes, keepdims=True)
        result = x - mean
        deviation = np.sqrt(np.mean(np.square(result), axis=axes, keepdims=True))
        result /= deviation + x.dtype.type(1e-9)
        return np.asarray(result)

    return computing_wide(info, run)


def _lp_norm(info: KernelInfo) -> KernelFn:
    """ONNX LpNormalization; where the norm is 0 so is the result."""
    axis, order = info.attr("axis", -1), info.attr("p", 2)
    if order not in (1, 2):
        raise ValueError(f"LpNormalization: p is {order}, expected 1 or 2")

    def run(x: Array) -> Array:
        if order == 1:
            norm = np.add.reduce(np.abs(x), axis, keepdims=True)
        else:
            norm = np.sqrt(np.add.reduce(np.square(x), axis, keepdims=True))
        norm = np.where(norm == 0, x.dtype.type(1), norm)
        return np.asarray(x / norm)

    return computing_wide(info, run)


def _local_response(info: KernelInfo) -> KernelFn:
    """ONNX LRN: scaled by the squares in a window of channels."""
    alpha, beta = float(info.attr("alpha", 1e-4)), float(info.attr("beta", 0.75))
    bias, size = float(info.attr("bias", 1.0)), info.attr("size")
    before = (size - 1) // 2

    def run(x: Array) -> Array:
        square = np.square(x)
        total = np.zeros_like(square)
        channels = x.shape[1]
        for shift in range(max(-before, 1 - channels), min(size - before, channels)):
            low, high = max(0, -shift), min(channels, channels - shift)
            total[:, low:high] += square[:, low + shift : high + shift]
        total *= alpha / size
        total += bias
        if beta == 0.75:  # two square roots cost a fraction of a power
            root = np.sqrt(total)
            total = root * np.sqrt(root)
        else:
            np.power(total, beta, out=total)
        return np.divide(x, total, out=total)

    return computing_wide(info, run)


def _batch_norm(info: KernelInfo) -> KernelFn:
    """ONNX BatchNormalization, all versions.

    Before version 14 training is asked for by having further outputs (and not being
    `is_test`), since then by an attribute. `spatial` 0 has one statistic for each activation.
    """
    epsilon, momentum = float(info.attr("epsilon", 1e-5)), float(info.attr("momentum", 0.9))
    if info.since_version >= 14:
        training = bool(info.attr("training_mode", 0))
    else:
        training = info.n_outputs > 1 and not info.attr("is_test", 0)
    spatial = bool(info.attr("spatial", 1))

    def fold_statistics(stats: tuple[Array, ...], rank: int) -> tuple[Array, Array]:
        """y = x * factor + offset, shaped to broadcast along the channels."""
        scale, bias, mean, variance = (s.astype(FLOAT64) for s in stats)
        factor = scale / np.sqrt(variance + epsilon)
        offset = bias - mean * factor
        shape = (-1,) + (1,) * (rank - 2) if spatial and rank > 1 else factor.shape
        return factor.reshape(shape), offset.reshape(shape)

    constants = tuple(info.constant(i) for i in range(1, 5))
    prepared: dict[int, tuple[Array, Array]] = {}
    if not training and all(c is not None for c in constants):
        with np.errstate(all="ignore"):  # what a run would give: infinities are not errors
            prepared = {rank: fold_statistics(constants, rank) for rank in range(2, 7)}

    def infer(x: Array, *stats: Array) -> Array:
        factor, offset = prepared.get(x.ndim) or fold_statistics(stats, x.ndim)
        kind = np.float32 if is_narrow_float(x.dtype) else x.dtype.type
        result = np.multiply(widen_floats(x), factor.astype(kind), out=info.empty(x.shape, kind))
        result += offset.astype(kind)
        return np.asarray(result).astype(x.dtype, copy=False)

    def train(x: Array, *stats: Array) -> tuple[Array, ...]:
        wide = widen_floats(x)
        axes = tuple(a for a in range(x.ndim) if a != 1) if spatial else (0,)
        mean, variance = np.mean(wide, axes), np.var(wide, axes)
        y = infer(x, stats[0], stats[1], mean, variance)
        running = [
            (old * momentum + new * (1 - momentum)).astype(old.dtype)
            for old, new in zip(stats[2:], (mean, variance), strict=True)
        ]
        return (y, *running, mean.astype(x.dtype), variance.astype(x.dtype))[: info.n_outputs]

    return train if training else infer


KERNELS: tuple[KernelDef, ...] = (
    kernel("LayerNormalization", since=(1, 17))(_layer_norm),
    kernel("RMSNormalization", since=(23, 23))(_rms_norm),
    kernel("GroupNormalization", since=(18, 21))(_group_norm),
    kernel("InstanceNormalization", since=(1, 22))(_instance_norm),
    kernel("MeanVarianceNormalization", since=(9, 13))(_mean_variance_norm),
    kernel("LpNormalization", since=(1, 22))(_lp_norm),
    kernel("LRN", since=(1, 13))(_local_response),
    kernel("BatchNormalization", since=(1, 15))(_batch_norm),
)

"""Softmax, its logarithm, Hardmax, and losses on them."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import axis_in, computing_wide
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array, Empty
    from ort_lite.ep import KernelFactory, KernelFn, KernelInfo

    AlongAxis = Callable[[Array, int], Array]

FLATTENING = 12
"""Up to this version everything from `axis` on is one dimension."""


def softmax(x: Array, axis: int, empty: Empty = np.empty) -> Array:
    """exp(x - max) / sum along `axis`; an empty axis stays empty."""
    if not x.size:
        return x.copy()
    peak = np.maximum.reduce(x, axis, keepdims=True)
    result = np.subtract(x, peak, out=empty(x.shape, x.dtype))
    np.exp(result, out=result)
    total = np.add.reduce(result, axis, keepdims=True)
    np.reciprocal(total, out=total)
    result *= total
    return result


def log_softmax(x: Array, axis: int) -> Array:
    """x - max - log(sum(exp(x - max))) along `axis`."""
    if not x.size:
        return x.copy()
    result = x - np.maximum.reduce(x, axis, keepdims=True)
    result -= np.log(np.add.reduce(np.exp(result), axis, keepdims=True))
    return np.asarray(result)


def _hardmax(x: Array, axis: int) -> Array:
    """1 at the first largest element along `axis`, else 0."""
    result = np.zeros_like(x)
    if x.size:
        places = np.expand_dims(np.argmax(x, axis), axis)
        np.put_along_axis(result, places, x.dtype.type(1), axis)
    return result


def _axis_kernel(function: AlongAxis) -> KernelFactory:
    def factory(info: KernelInfo) -> KernelFn:
        if info.since_version <= FLATTENING:
            axis = info.attr("axis", 1)

            def run_flattened(x: Array) -> Array:
                split = axis_in(axis, x.ndim)
                rows = x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))
                return function(rows, 1).reshape(x.shape)

            return computing_wide(info, run_flattened)
        axis = info.attr("axis", -1)
        return computing_wide(info, lambda x: function(x, axis_in(axis, x.ndim)))

    return factory


def _softmax(info: KernelInfo) -> KernelFn | None:
    return _axis_kernel(partial(softmax, empty=info.empty))(info)


def _negative_log_likelihood(
    log_prob: Array, target: Array, weight: Array | None, options: _LossOptions
) -> Array:
    """ONNX NegativeLogLikelihoodLoss-13; log_prob is [N, C, *d], target [N, *d]."""
    ignore = options.ignore
    ignored = np.zeros(target.shape, np.bool_) if ignore is None else target == ignore
    places = np.where(ignored, 0, target)[:, None]
    picked = np.take_along_axis(log_prob, places.astype(np.int64), 1)[:, 0]
    scale = np.ones(target.shape, log_prob.dtype) if weight is None else weight[places[:, 0]]
    scale = np.where(ignored, scale.dtype.type(0), scale)
    loss = np.asarray(-picked * scale)
    if options.reduction == "none":
        return loss
    total = loss.sum(dtype=loss.dtype)
    if options.reduction == "sum":
        return np.asarray(total)
    return np.asarray(total / scale.sum(dtype=scale.dtype))


class _LossOptions:
    """Attributes of the two losses."""

    def __init__(self, info: KernelInfo) -> None:
        self.ignore = info.attr("ignore_index")
        self.reduction = info.attr("reduction", "mean")
        if self.reduction not in ("none", "sum", "mean"):
            raise ValueError(
                f"{info.op_type}: reduction is '{self.reduction}', expected none, sum or mean"
            )


def _loss(info: KernelInfo) -> KernelFn:
    options = _LossOptions(info)
    return computing_wide(
        info,
        lambda x, target, weight=None: _negative_log_likelihood(x, target, weight, options),
    )


def _cross_entropy(info: KernelInfo) -> KernelFn:
    """ONNX SoftmaxCrossEntropyLoss-13: the loss, and the logarithms it came from."""
    options = _LossOptions(info)

    def loss(scores: Array, target: Array, weight: Array | None = None) -> tuple[Array, ...]:
        log_prob = log_softmax(scores, 1)
        return _negative_log_likelihood(log_prob, target, weight, options), log_prob

    return computing_wide(info, loss)


KERNELS: tuple[KernelDef, ...] = (
    kernel("Softmax", since=(1, 13))(_softmax),
    kernel("LogSoftmax", since=(1, 13))(_axis_kernel(log_softmax)),
    kernel("Hardmax", since=(1, 13))(_axis_kernel(_hardmax)),
    kernel("NegativeLogLikelihoodLoss", since=(12, 22))(_loss),
    kernel("SoftmaxCrossEntropyLoss", since=(12, 13))(_cross_entropy),
)

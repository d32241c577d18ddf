"""What ai.onnx.ml models do to their scores at the end: `post_transform`."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.kernels.softmax import softmax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.cpu.arrays import Array
    from ort_lite.kernel_registry import KernelInfo

_NOTHING = 1e-7


def _logistic(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _softmax_zero(x: Array) -> Array:
    """Softmax of the entries that are not 0; those stay 0: ml_common.h ComputeSoftmaxZero."""
    there = np.abs(x) > _NOTHING
    powers = np.where(there, np.exp(x - x.max(-1, keepdims=True)), 0)
    total = powers.sum(-1, keepdims=True)
    return np.asarray(powers / np.where(total == 0, 1, total))


def _probit(x: Array) -> Array:
    """The normal distribution's quantiles by Winitzki's approximation, as ONNX Runtime has them."""
    y = 2 * x - 1
    logarithm = np.log((1 - y) * (1 + y))
    v = 2 / (math.pi * 0.147) + 0.5 * logarithm
    root = np.sqrt(-v + np.sqrt(v * v - logarithm / 0.147))
    return np.asarray(np.where(y < 0, -root, root) * math.sqrt(2))


_TRANSFORMS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "NONE": lambda x: x,
        "LOGISTIC": _logistic,
        "SOFTMAX": lambda x: softmax(x, -1),
        "SOFTMAX_ZERO": _softmax_zero,
        "PROBIT": _probit,
    }
)


def transform_of(info: KernelInfo) -> Callable[[Array], Array]:
    """The node's function of scores [N, classes], which keeps their type.

    Raises:
        ValueError: It is none of ONNX's.
    """
    name = info.attr("post_transform", "NONE")
    if name not in _TRANSFORMS:
        raise ValueError(f"{info.op_type}: post_transform is '{name}'")
    function = _TRANSFORMS[name]
    return lambda x: np.asarray(function(x), x.dtype)

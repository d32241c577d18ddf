"""How ai.onnx.ml classifiers and regressors end: `post_transform` and class labels."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.kernels.softmax import softmax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelInfo

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
    return transform_named(info.attr("post_transform", "NONE"), info.op_type)


def transform_named(name: str, op_type: str) -> Callable[[Array], Array]:
    """As `transform_of`, by the function's name."""
    if name not in _TRANSFORMS:
        raise ValueError(f"{op_type}: post_transform is '{name}'")
    function = _TRANSFORMS[name]
    return lambda x: np.asarray(function(x), x.dtype)


def labels_of(info: KernelInfo) -> Array:
    """Class labels of a node, int64 or strings.

    Raises:
        ValueError: There are none.
    """
    texts = info.attr("classlabels_strings")
    numbers = info.attr("classlabels_int64s") or info.attr("classlabels_ints")
    if not texts and not numbers:
        raise ValueError(f"{info.op_type}: no class labels")
    return np.array(texts, object) if texts else np.array(numbers, np.int64)

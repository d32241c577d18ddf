"""Element-wise operators of one input without attributes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.array_pool import into
from eps.cpu.arrays import computing_wide
from eps.cpu.erf import erf
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFactory, KernelFn, KernelInfo

    Function = Callable[..., Array]


_FEW = 512
"""Elements; for as many numpy.maximum is faster than clip, which is slow to begin."""

_ZERO, _INFINITY = np.float32(0), np.float32(np.inf)


def sigmoid(x: Array, out: Array | None = None) -> Array:
    """1 / (1 + exp(-x)); exp overflows to infinity for large -x, which gives 0."""
    result = np.negative(x, out=np.empty_like(x) if out is None else out)
    np.exp(result, out=result)
    result += 1
    return np.reciprocal(result, out=result)


def softplus(x: Array, out: Array | None = None) -> Array:
    """log(1 + exp(x)) without overflow: max(x, 0) + log1p(exp(-|x|))."""
    result = np.abs(x, out=np.empty_like(x) if out is None else out)
    np.negative(result, out=result)
    np.exp(result, out=result)
    np.log1p(result, out=result)
    return np.add(result, np.maximum(x, 0), out=result)


def softsign(x: Array, out: Array | None = None) -> Array:
    """x / (1 + |x|)."""
    result = np.abs(x, out=np.empty_like(x) if out is None else out)
    result += 1
    return np.divide(x, result, out=result)


def mish(x: Array, out: Array | None = None) -> Array:
    """x * tanh(softplus(x)): ONNX Mish-18."""
    result = softplus(x, out)
    np.tanh(result, out=result)
    return np.multiply(result, x, out=result)


def hard_swish(x: Array, out: Array | None = None) -> Array:
    """x * max(0, min(1, x / 6 + 0.5)): ONNX HardSwish-14."""
    result = np.divide(x, 6, out=np.empty_like(x) if out is None else out)
    result += 0.5
    np.clip(result, 0, 1, out=result)
    return np.multiply(result, x, out=result)


def relu(x: Array, out: Array | None = None) -> Array:
    """max(x, 0); of many floats by clipping, which numpy does with vectors of the CPU."""
    if x.dtype == np.float32 and x.size > _FEW:
        return x.clip(_ZERO, _INFINITY, out=out)
    return np.asarray(np.maximum(x, x.dtype.type(0), out=out))


_EXACT: Mapping[str, tuple[Function, int, int]] = MappingProxyType(
    {
        "Abs": (np.abs, 1, 13),
        "BitwiseNot": (np.invert, 18, 18),
        "Ceil": (np.ceil, 1, 13),
        "Floor": (np.floor, 1, 13),
        "Neg": (np.negative, 1, 13),
        "Relu": (relu, 1, 14),
        "Round": (np.rint, 11, 22),  # rint rounds halves to even, as the operator does
        "Sign": (np.sign, 9, 13),
    }
)
"""Operators whose result is exact, and of the type it is of; with their first and last version."""

_ROUNDED: Mapping[str, tuple[Function, int, int]] = MappingProxyType(
    {
        "Acos": (np.arccos, 7, 22),
        "Acosh": (np.arccosh, 9, 22),
        "Asin": (np.arcsin, 7, 22),
        "Asinh": (np.arcsinh, 9, 22),
        "Atan": (np.arctan, 7, 22),
        "Atanh": (np.arctanh, 9, 22),
        "Cos": (np.cos, 7, 22),
        "Cosh": (np.cosh, 9, 22),
        "Erf": (erf, 9, 13),
        "Exp": (np.exp, 1, 13),
        "HardSwish": (hard_swish, 14, 22),
        "Log": (np.log, 1, 13),
        "Mish": (mish, 18, 22),
        "Reciprocal": (np.reciprocal, 1, 13),
        "Sigmoid": (sigmoid, 1, 13),
        "Sin": (np.sin, 7, 22),
        "Sinh": (np.sinh, 9, 22),
        "Softplus": (softplus, 1, 22),
        "Softsign": (softsign, 1, 22),
        "Sqrt": (np.sqrt, 1, 13),
        "Tan": (np.tan, 7, 22),
        "Tanh": (np.tanh, 1, 13),
    }
)
"""Operators on floats, computed in float32 for narrower ones."""


def _unwidened_kernel(function: Function) -> KernelFactory:
    return lambda info: into(info, function)


def _rounding_kernel(function: Function) -> KernelFactory:
    return lambda info: computing_wide(info, into(info, function))


def _is_nan(_: KernelInfo) -> KernelFn:
    return np.isnan


def _not(_: KernelInfo) -> KernelFn:
    return np.logical_not


KERNELS: tuple[KernelDef, ...] = (
    *(kernel(op, since=(a, b))(_unwidened_kernel(fn)) for op, (fn, a, b) in _EXACT.items()),
    *(kernel(op, since=(a, b))(_rounding_kernel(fn)) for op, (fn, a, b) in _ROUNDED.items()),
    kernel("IsNaN", since=(9, 20))(_is_nan),
    kernel("Not", since=(1, 1))(_not),
)

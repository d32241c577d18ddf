"""Element-wise operators of two or more inputs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.array_pool import broadcasting
from eps.cpu.arrays import (
    computing_wide,
    is_floating,
    outer_checked,
)
from eps.cpu.powers import power
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFactory, KernelFn, KernelInfo

    Function = Callable[[Array, Array], Array]

_SAME_TYPE = frozenset((np.add, np.subtract, np.multiply))
LAST_LEGACY = 6
"""Up to this version arithmetic broadcasts only where attribute `broadcast` says so."""


def divide(a: Array, b: Array) -> Array:
    """a / b; of integers rounded toward zero, and 0 if b is 0 (ONNX Div-14)."""
    if is_floating(a.dtype) or a.dtype.kind == "c":
        return np.asarray(np.true_divide(a, b))
    if a.dtype.kind == "u":
        return np.asarray(np.floor_divide(a, b))
    if a.size == b.size == 1 and a.item() >= 0 and b.item() > 0:  # sizes, in shape arithmetic
        return np.asarray(np.floor_divide(a, b))
    quotient = np.floor_divide(a, b)
    inexact = np.multiply(quotient, b) != a
    toward_zero = inexact & ((a < 0) != (b < 0)) & (b != 0)
    return np.asarray(quotient + toward_zero.astype(a.dtype))


_ARITHMETIC: Mapping[str, tuple[Function, int]] = MappingProxyType(
    {
        "Add": (np.add, 14),
        "Sub": (np.subtract, 14),
        "Mul": (np.multiply, 14),
        "Div": (divide, 14),
        "And": (np.logical_and, 7),
        "Or": (np.logical_or, 7),
        "Xor": (np.logical_xor, 7),
        "Equal": (np.equal, 19),
        "Greater": (np.greater, 13),
        "Less": (np.less, 13),
    }
)
"""Operators that broadcast by attributes in their first versions; with the last one."""

_SIMPLE: Mapping[str, tuple[Function, int, int]] = MappingProxyType(
    {
        "BitwiseAnd": (np.bitwise_and, 18, 18),
        "BitwiseOr": (np.bitwise_or, 18, 18),
        "BitwiseXor": (np.bitwise_xor, 18, 18),
        "GreaterOrEqual": (np.greater_equal, 12, 16),
        "LessOrEqual": (np.less_equal, 12, 16),
    }
)


def _legacy_broadcast(info: KernelInfo, function: Function) -> KernelFn:
    """`function`, for versions up to 6 with the second input laid along `axis`."""
    if info.since_version > LAST_LEGACY:
        return _with_memory(info, function)
    broadcast, axis = info.attr("broadcast", 0), info.attr("axis")

    def run_aligned(a: Array, b: Array) -> Array:
        if not broadcast and a.shape != b.shape and b.ndim:  # scalars went through, and do
            raise ValueError(f"shapes {a.shape} and {b.shape} differ and broadcast is 0")
        if axis is not None and b.ndim:
            b = b.reshape(b.shape + (1,) * (a.ndim - axis % max(a.ndim, 1) - b.ndim))
        return function(a, b)

    return run_aligned


def _with_memory(info: KernelInfo, function: Function) -> KernelFn:
    """`function`, large results in the session's memory where they have the inputs' type."""
    if isinstance(function, np.ufunc) and function in _SAME_TYPE:
        return broadcasting(info, function)
    if function is not divide:
        return outer_checked(function)
    quotient = broadcasting(info, np.true_divide)

    def run(a: Array, b: Array) -> Array:
        return quotient(a, b) if a.dtype.kind == "f" else divide(a, b)

    return run


def _arithmetic(function: Function) -> KernelFactory:
    return lambda info: _legacy_broadcast(info, function)


def _plain(function: Function) -> KernelFactory:
    def factory(_: KernelInfo) -> KernelFn:
        return outer_checked(function)

    return factory


def _mod(info: KernelInfo) -> KernelFn:
    """ONNX Mod: the sign of the divisor, or with fmod that of the dividend."""
    if info.attr("fmod", 0):
        return computing_wide(info, outer_checked(np.fmod))

    def modulo(a: Array, b: Array) -> Array:
        return np.asarray(np.mod(a, b))

    return computing_wide(info, outer_checked(modulo))


def _bit_shift(info: KernelInfo) -> KernelFn:
    direction = info.attr("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"BitShift: direction is '{direction}', expected 'LEFT' or 'RIGHT'")
    return outer_checked(np.left_shift if direction == "LEFT" else np.right_shift)


def _variadic(function: np.ufunc) -> KernelFactory:
    """Max, Min and Sum: `function` over all inputs, from the left."""

    def factory(info: KernelInfo) -> KernelFn:
        combine = broadcasting(info, function)
        if info.n_inputs == 2:
            return combine

        def reduce(first: Array, *rest: Array) -> Array:
            for item in rest:
                first = combine(first, item)
            return first

        return reduce

    return factory


def _mean(info: KernelInfo) -> KernelFn:
    count, add = info.n_inputs, outer_checked(np.add)

    def mean(*inputs: Array) -> Array:
        total: Any = inputs[0]
        for item in inputs[1:]:
            total = add(total, item)
        return np.asarray(total / inputs[0].dtype.type(count))

    return computing_wide(info, mean)


KERNELS: tuple[KernelDef, ...] = (
    *(kernel(op, since=(1, b))(_arithmetic(fn)) for op, (fn, b) in _ARITHMETIC.items()),
    *(kernel(op, since=(a, b))(_plain(fn)) for op, (fn, a, b) in _SIMPLE.items()),
    kernel("Pow", since=(1, 15))(_arithmetic(power)),
    kernel("Mod", since=(10, 28))(_mod),
    kernel("BitShift", since=(11, 28))(_bit_shift),
    kernel("Max", since=(1, 13))(_variadic(np.maximum)),
    kernel("Min", since=(1, 13))(_variadic(np.minimum)),
    kernel("Sum", since=(1, 13))(_variadic(np.add)),
    kernel("Mean", since=(1, 13))(_mean),
)

"""com.microsoft operators on quantised tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import outer_checked
from eps.cpu.kernels.unary import sigmoid
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"


def dequantize_linear(x: Array, scale: Array, zero: Array | None) -> Array:
    """(x - zero) * scale in float32; scalars or one value a row of the last axis."""
    steps = x.astype(np.float32)
    if zero is not None:
        steps -= zero.astype(np.float32)
    return np.asarray(steps * scale)


def requantize(x: Array, scale: Array, zero: Array) -> Array:
    """x / scale, rounded to even, plus zero, saturated to the type of `zero`."""
    return _saturate(np.rint(x / scale) + zero.astype(np.float32), zero.dtype)


def requantize_with_zero(x: Array, scale: Array, zero: Array) -> Array:
    """x / scale + zero, rounded to even and saturated to the type of `zero`.

    So onnxruntime computes QLinearAdd, QLinearMul and QLinearAveragePool: of a result in the middle
    between two steps, the zero point decides which is even.
    """
    return _saturate(np.rint(x / scale + zero.astype(np.float32)), zero.dtype)


def _saturate(steps: Array, kind: np.dtype[Any]) -> Array:
    bounds = np.iinfo(kind)
    return np.asarray(np.clip(steps, bounds.min, bounds.max), kind)


def _zero(zero: Array | None, like: Array) -> Array:
    return np.zeros((), like.dtype) if zero is None else zero


def _binary(operation: Callable[[Array, Array], Array]) -> Callable[[KernelInfo], KernelFn]:
    """QLinearAdd and QLinearMul: A, its scale and zero point, B likewise, then C's."""
    checked = outer_checked(operation)

    def factory(_: KernelInfo) -> KernelFn:
        def run(*inputs: Array | None) -> Array:
            a, a_scale, a_zero, b, b_scale, b_zero, c_scale = inputs[:7]
            assert a is not None
            assert b is not None
            assert a_scale is not None
            assert b_scale is not None
            assert c_scale is not None
            c_zero = _zero(inputs[7] if len(inputs) > 7 else None, a)
            steps = checked(
                dequantize_linear(a, a_scale, a_zero), dequantize_linear(b, b_scale, b_zero)
            )
            return requantize_with_zero(steps, c_scale, c_zero)

        return run

    return factory


def _unary(function: Callable[[KernelInfo, Array], Array]) -> Callable[[KernelInfo], KernelFn]:
    """X, its scale and zero point, Y's scale and zero point."""

    def factory(info: KernelInfo) -> KernelFn:
        def run(
            x: Array,
            x_scale: Array,
            x_zero: Array | None,
            y_scale: Array,
            y_zero: Array | None = None,
        ) -> Array:
            result = function(info, dequantize_linear(x, x_scale, x_zero))
            return requantize(result, y_scale, _zero(y_zero, x))

        return run

    return factory


def _leaky(info: KernelInfo, x: Array) -> Array:
    return np.where(x < 0, x * np.float32(info.attr("alpha", 0.01)), x)


def _mean(info: KernelInfo, x: Array) -> Array:
    last = bool(info.attr("channels_last", 0))
    axes = tuple(range(1, x.ndim - 1)) if last else tuple(range(2, x.ndim))
    return np.asarray(x.mean(axes, keepdims=True))


def _softmax(info: KernelInfo) -> KernelFn:
    """QLinearSoftmax-1; `opset` says whether axes behind `axis` are one (before 13)."""
    opset = int(info.attr("opset", 13))
    axis = int(info.attr("axis", -1 if opset >= 13 else 1))

    def run(
        x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None
    ) -> Array:
        wide = dequantize_linear(x, x_scale, x_zero)
        at = axis % wide.ndim
        axes = (at,) if opset >= 13 else tuple(range(at, wide.ndim))
        wide -= wide.max(axes, keepdims=True)
        np.exp(wide, out=wide)
        wide /= wide.sum(axes, keepdims=True)
        return requantize(wide, y_scale, _zero(y_zero, x))

    return run


def _concat(info: KernelInfo) -> KernelFn:
    """Y's scale and zero point, then tensor, scale and zero point of each input."""
    axis = int(info.attr("axis"))

    def run(y_scale: Array, y_zero: Array, *inputs: Array) -> Array:
        parts = [
            requantize(dequantize_linear(*inputs[i : i + 3]), y_scale, y_zero)
            for i in range(0, len(inputs), 3)
        ]
        return np.concatenate(parts, axis)

    return run


def _where(_: KernelInfo) -> KernelFn:
    """Condition, X, its scale and zero point, Y likewise, then Z's: QLinearWhere-1."""

    def run(condition: Array, *inputs: Array) -> Array:
        x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero = inputs
        left = requantize(dequantize_linear(x, x_scale, x_zero), z_scale, z_zero)
        right = requantize(dequantize_linear(y, y_scale, y_zero), z_scale, z_zero)
        return np.where(condition, left, right)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("QLinearAdd", domain=DOMAIN)(_binary(np.add)),
    kernel("QLinearMul", domain=DOMAIN)(_binary(np.multiply)),
    kernel("QLinearSigmoid", domain=DOMAIN)(_unary(lambda _, x: sigmoid(x))),
    kernel("QLinearLeakyRelu", domain=DOMAIN)(_unary(_leaky)),
    kernel("QLinearGlobalAveragePool", domain=DOMAIN)(_unary(_mean)),
    kernel("QLinearSoftmax", domain=DOMAIN)(_softmax),
    kernel("QLinearConcat", domain=DOMAIN)(_concat),
    kernel("QLinearWhere", domain=DOMAIN)(_where),
)

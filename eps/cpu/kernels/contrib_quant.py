"""com.microsoft operators on quantised tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.kernels.contrib_lstm import quantized_steps
from eps.cpu.kernels.unary import sigmoid
from ort_lite.kernel_registry import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.kernel_registry import KernelFn, KernelInfo

DOMAIN = "com.microsoft"


def dequantized(x: Array, scale: Array, zero: Array | None) -> Array:
    """(x - zero) * scale in float32; scalars or one value a row of the last axis."""
    steps = x.astype(np.float32)
    if zero is not None:
        steps -= zero.astype(np.float32)
    return np.asarray(steps * scale)


def requantized(x: Array, scale: Array, zero: Array) -> Array:
    """x / scale + zero, rounded to even and saturated to the type of `zero`."""
    bounds = np.iinfo(zero.dtype)
    steps = np.rint(x / scale) + zero.astype(np.float32)
    return np.asarray(np.clip(steps, bounds.min, bounds.max), zero.dtype)


def _zero(zero: Array | None, like: Array) -> Array:
    return np.zeros((), like.dtype) if zero is None else zero


def _binary(operation: Callable[[Array, Array], Array]) -> Callable[[KernelInfo], KernelFn]:
    """QLinearAdd and QLinearMul: A, its scale and zero point, B likewise, then C's."""

    def factory(_: KernelInfo) -> KernelFn:
        def run(*inputs: Array | None) -> Array:
            a, a_scale, a_zero, b, b_scale, b_zero, c_scale = inputs[:7]
            assert a is not None
            assert b is not None
            assert a_scale is not None
            assert b_scale is not None
            assert c_scale is not None
            c_zero = _zero(inputs[7] if len(inputs) > 7 else None, a)
            result = operation(dequantized(a, a_scale, a_zero), dequantized(b, b_scale, b_zero))
            return requantized(result, c_scale, c_zero)

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
            result = function(info, dequantized(x, x_scale, x_zero))
            return requantized(result, y_scale, _zero(y_zero, x))

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
    axis, opset = int(info.attr("axis", -1)), int(info.attr("opset", 13))

    def run(
        x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None
    ) -> Array:
        wide = dequantized(x, x_scale, x_zero)
        at = axis % wide.ndim
        axes = (at,) if opset >= 13 else tuple(range(at, wide.ndim))
        wide -= wide.max(axes, keepdims=True)
        np.exp(wide, out=wide)
        wide /= wide.sum(axes, keepdims=True)
        return requantized(wide, y_scale, _zero(y_zero, x))

    return run


def _concat(info: KernelInfo) -> KernelFn:
    """Y's scale and zero point, then tensor, scale and zero point of each input."""
    axis = int(info.attr("axis"))

    def run(y_scale: Array, y_zero: Array, *inputs: Array) -> Array:
        parts = [
            requantized(dequantized(*inputs[i : i + 3]), y_scale, y_zero)
            for i in range(0, len(inputs), 3)
        ]
        return np.concatenate(parts, axis)

    return run


def _dynamic_matmul(_: KernelInfo) -> KernelFn:
    """A, quantised on the fly as a whole, times quantised B: DynamicQuantizeMatMul-1."""

    def run(
        a: Array, b: Array, b_scale: Array, b_zero: Array | None = None, bias: Array | None = None
    ) -> Array:
        steps, scale = quantized_steps(a)
        weights = b.astype(np.float32)
        if b_zero is not None:
            weights -= b_zero.astype(np.float32)
        result = np.asarray(np.matmul(steps, weights) * (scale * b_scale))
        return result if bias is None else result + bias

    return run


def _matmul_to_float(_: KernelInfo) -> KernelFn:
    """Quantised A times quantised B in float32: MatMulIntegerToFloat-1."""

    def run(*inputs: Array | None) -> Array:
        given = (*inputs, *(None,) * (7 - len(inputs)))
        a, b, a_scale, b_scale, a_zero, b_zero, bias = given
        assert a is not None
        assert b is not None
        assert a_scale is not None
        assert b_scale is not None
        left, right = a.astype(np.float32), b.astype(np.float32)
        if a_zero is not None:
            left -= a_zero.astype(np.float32)
        if b_zero is not None:
            right -= b_zero.astype(np.float32)
        result = np.asarray(np.matmul(left, right) * (a_scale * b_scale))
        return result if bias is None else result + bias

    return run


def _matmul_nbits(info: KernelInfo) -> KernelFn:
    """A [..., K] times B [N, K], whose rows are blocks of 4-bit steps: MatMulNBits-1."""
    size, bits = int(info.attr("block_size")), int(info.attr("bits", 4))
    depth, width = int(info.attr("K")), int(info.attr("N"))
    if bits != 4:
        raise ValueError(f"MatMulNBits: bits is {bits}, only 4 is known")

    def run(*inputs: Array | None) -> Array:
        given = (*inputs, *(None,) * (6 - len(inputs)))
        a, b, scales, zeros, _, bias = given
        assert a is not None
        assert b is not None
        assert scales is not None
        blocks = b.shape[1]
        steps = np.empty((width, blocks, size), np.float32)
        steps[..., 0::2], steps[..., 1::2] = b & 15, b >> 4
        steps -= _block_zeros(zeros, width, blocks)
        steps *= scales.reshape(width, blocks, 1)
        weights = steps.reshape(width, blocks * size)[:, :depth]
        result = np.matmul(a.astype(np.float32, copy=False), weights.T)
        if bias is not None:
            result += bias
        return np.asarray(result, a.dtype)

    return run


def _block_zeros(zeros: Array | None, width: int, blocks: int) -> Array:
    """Zero points [N, blocks, 1]: 8 where none are given; packed two to a byte, or floats."""
    if zeros is None:
        return np.full((1, 1, 1), 8, np.float32)
    if zeros.dtype != np.uint8:
        return zeros.reshape(width, blocks, 1).astype(np.float32)
    packed = zeros.reshape(width, -1)
    unpacked = np.empty((width, packed.shape[1] * 2), np.float32)
    unpacked[:, 0::2], unpacked[:, 1::2] = packed & 15, packed >> 4
    return unpacked[:, :blocks, None]


KERNELS: tuple[KernelDef, ...] = (
    kernel("QLinearAdd", domain=DOMAIN)(_binary(np.add)),
    kernel("QLinearMul", domain=DOMAIN)(_binary(np.multiply)),
    kernel("QLinearSigmoid", domain=DOMAIN)(_unary(lambda _, x: sigmoid(x))),
    kernel("QLinearLeakyRelu", domain=DOMAIN)(_unary(_leaky)),
    kernel("QLinearGlobalAveragePool", domain=DOMAIN)(_unary(_mean)),
    kernel("QLinearSoftmax", domain=DOMAIN)(_softmax),
    kernel("QLinearConcat", domain=DOMAIN)(_concat),
    kernel("DynamicQuantizeMatMul", domain=DOMAIN)(_dynamic_matmul),
    kernel("MatMulIntegerToFloat", domain=DOMAIN)(_matmul_to_float),
    kernel("MatMulNBits", domain=DOMAIN)(_matmul_nbits),
)

"""Element-wise activations with parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.array_pool import LEAST_BYTES, into
from eps.cpu.arrays import computing_wide, outer_checked
from eps.cpu.erf import gelu, gelu_tanh
from eps.cpu.kernels.unary import sigmoid
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def scaled_exponential(x: Array, alpha: float, gamma: float) -> Array:
    """gamma * x where x > 0, else gamma * alpha * (exp(x) - 1)."""
    result = _exponential_below(np.minimum(x, 0, out=np.empty_like(x)))
    result *= gamma * alpha
    result += np.maximum(x, 0) * x.dtype.type(gamma)
    return result


def _exponential_below(x: Array) -> Array:
    """exp(x) - 1 of what is not positive, in place.

    In float32 as 2 t / (1 - t) with t = tanh(x / 2), which loses nothing near 0 and goes through
    vectors: ten times as fast as numpy.expm1.
    """
    if x.dtype != np.float32:
        return np.expm1(x, out=x)
    x *= np.float32(0.5)
    np.tanh(x, out=x)
    rest = np.subtract(np.float32(1), x)
    x += x
    return np.divide(x, rest, out=x)


def _elu(info: KernelInfo) -> KernelFn:
    alpha = float(info.attr("alpha", 1.0))
    return computing_wide(info, lambda x: scaled_exponential(x, alpha, 1.0))


def _selu(info: KernelInfo) -> KernelFn:
    alpha, gamma = float(info.attr("alpha")), float(info.attr("gamma"))
    return computing_wide(info, lambda x: scaled_exponential(x, alpha, gamma))


def _celu(info: KernelInfo) -> KernelFn:
    alpha = float(info.attr("alpha", 1.0))

    def celu(x: Array) -> Array:
        result = np.minimum(x, 0, out=np.empty_like(x))
        result /= x.dtype.type(alpha)
        result = _exponential_below(result)
        result *= x.dtype.type(alpha)
        return np.add(result, np.maximum(x, 0), out=result)

    return computing_wide(info, celu)


def _leaky_relu(info: KernelInfo) -> KernelFn:
    alpha = float(info.attr("alpha", 0.01))
    if 0 <= alpha <= 1:

        def leaky(x: Array, out: Array | None = None) -> Array:
            result = np.multiply(x, x.dtype.type(alpha), out=out)
            return np.asarray(np.maximum(x, result, out=out))

        return computing_wide(info, into(info, leaky))
    return computing_wide(info, lambda x: np.where(x < 0, x * x.dtype.type(alpha), x))


def thresholded_relu(info: KernelInfo) -> KernelFn:
    """x above alpha, else 0: ONNX ThresholdedRelu-10."""
    alpha = float(info.attr("alpha", 1.0))
    return computing_wide(info, lambda x: np.where(x > x.dtype.type(alpha), x, x.dtype.type(0)))


def _hard_sigmoid(info: KernelInfo) -> KernelFn:
    alpha, beta = float(info.attr("alpha", 0.2)), float(info.attr("beta", 0.5))

    def hard_sigmoid(x: Array, out: Array | None = None) -> Array:
        result = np.multiply(x, alpha, out=np.empty_like(x) if out is None else out)
        result += beta
        return clip(result, 0, 1, out=result)

    return computing_wide(info, into(info, hard_sigmoid))


def _shrink(info: KernelInfo) -> KernelFn:
    """ONNX Shrink-9; integers keep their type, as in its reference."""
    bias, lambd = float(info.attr("bias", 0.0)), float(info.attr("lambd", 0.5))

    def shrink(x: Array) -> Array:
        low, high = (x + bias).astype(x.dtype), (x - bias).astype(x.dtype)
        return np.where(x < -lambd, low, np.where(x > lambd, high, x.dtype.type(0)))

    return computing_wide(info, shrink)


def swish(x: Array, alpha: float, out: Array | None = None) -> Array:
    """x * sigmoid(alpha * x)."""
    result = sigmoid(x if alpha == 1 else np.asarray(x * x.dtype.type(alpha)), out)
    return np.multiply(result, x, out=result)


def _swish(info: KernelInfo) -> KernelFn:
    alpha = float(info.attr("alpha", 1.0))
    return computing_wide(info, lambda x: swish(x, alpha))


def _swiglu(info: KernelInfo) -> KernelFn:
    alpha = float(info.attr("alpha", 1.0))
    return computing_wide(info, lambda gate, value: swish(gate, alpha) * value)


def _gelu(info: KernelInfo) -> KernelFn:
    how = info.attr("approximate", "none")
    if how not in ("none", "tanh"):
        raise ValueError(f"Gelu: approximate is '{how}', expected 'none' or 'tanh'")
    return computing_wide(info, into(info, gelu if how == "none" else gelu_tanh))


def _prelu(info: KernelInfo) -> KernelFn:
    """ONNX PRelu; before version 7 a slope of one dimension lies along axis 1."""
    legacy = info.since_version < 7
    scaled = outer_checked(np.multiply)

    def prelu(x: Array, slope: Array) -> Array:
        if legacy and slope.ndim == 1 and slope.size > 1 and x.ndim > 1:
            slope = slope.reshape((-1,) + (1,) * (x.ndim - 2))
        return np.where(x < 0, scaled(x, slope).astype(x.dtype, copy=False), x)

    return computing_wide(info, prelu)


def _is_inf(info: KernelInfo) -> KernelFn:
    """ONNX IsInf, for either sign or both."""
    positive = bool(info.attr("detect_positive", 1))
    negative = bool(info.attr("detect_negative", 1))
    if positive and negative:
        return np.isinf
    if not (positive or negative):
        return lambda x: np.zeros(x.shape, np.bool_)
    infinity = np.inf if positive else -np.inf
    return lambda x: np.equal(x, x.dtype.type(infinity))


def clip(x: Array, low: Any, high: Any, out: Array | None = None) -> Array:  # noqa: ANN401 - scalar, array or None
    """min(max(x, low), high); NaN stays, and `high` wins if it is below `low`."""
    if low is not None and high is not None and x.dtype == np.float32 and x.ndim:
        return x.clip(low, high, out=out)  # one pass, with vectors of the CPU
    if low is not None:
        x = np.maximum(x, low, out=out)
    if high is not None:
        x = np.minimum(x, high, out=out)
    return np.asarray(x)


def _clip_attributes(info: KernelInfo) -> KernelFn:
    """ONNX Clip-1 and 6: bounds are attributes, absent ones do not bind."""
    low = info.attr("min") if info.has_attr("min") else None
    high = info.attr("max") if info.has_attr("max") else None

    def clip_fixed(x: Array, out: Array | None = None) -> Array:
        kind = x.dtype.type
        lowest, highest = (None if b is None else kind(b) for b in (low, high))
        return clip(x, lowest, highest, out)

    return into(info, clip_fixed)


def _clip(info: KernelInfo) -> KernelFn:
    """ONNX Clip-11: bounds are inputs."""

    def clip_by(x: Array, low: Array | None = None, high: Array | None = None) -> Array:
        large = x.nbytes >= LEAST_BYTES
        return clip(x, low, high, info.empty(x.shape, x.dtype) if large else None)

    return clip_by


KERNELS: tuple[KernelDef, ...] = (
    kernel("Elu", since=(1, 22))(_elu),
    kernel("Selu", since=(1, 22))(_selu),
    kernel("Celu", since=(12, 28))(_celu),
    kernel("LeakyRelu", since=(1, 16))(_leaky_relu),
    kernel("ThresholdedRelu", since=(10, 22))(thresholded_relu),
    kernel("HardSigmoid", since=(1, 22))(_hard_sigmoid),
    kernel("Shrink", since=(9, 9))(_shrink),
    kernel("Swish", since=(24, 24))(_swish),
    kernel("SwiGLU", since=(28, 28))(_swiglu),
    kernel("Gelu", since=(20, 20))(_gelu),
    kernel("PRelu", since=(1, 16))(_prelu),
    kernel("IsInf", since=(10, 20))(_is_inf),
    kernel("Clip", since=(1, 6))(_clip_attributes),
    kernel("Clip", since=(11, 13))(_clip),
)

"""com.microsoft operators that ONNX Runtime's optimizer makes of several standard ones."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import axis_in, computing_wide, outer_checked, widen_floats
from eps.cpu.erf import erf
from eps.cpu.kernels.norm import layer_norm
from eps.cpu.kernels.unary import sigmoid
from eps.cpu.products import matmul
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"


_add, _multiply = outer_checked(np.add), outer_checked(np.multiply)


def gelu(x: Array) -> Array:
    """x / 2 * (1 + erf(x / sqrt 2))."""
    result = erf(x * x.dtype.type(np.sqrt(0.5)))
    result += 1
    result *= x
    result *= x.dtype.type(0.5)
    return result


def fast_gelu(x: Array) -> Array:
    """x / 2 * (1 + tanh(0.797885 x + 0.035677 x**3)): contrib_ops/cpu/bert/bias_gelu.h."""
    result = np.tanh(x * (x.dtype.type(0.035677408136300125) * x * x + 0.7978845608028654))
    result += 1
    result *= x
    result *= x.dtype.type(0.5)
    return np.asarray(result)


def _gelu(info: KernelInfo) -> KernelFn:
    return computing_wide(info, gelu)


def _bias_gelu(info: KernelInfo) -> KernelFn:
    return computing_wide(info, lambda x, bias: gelu(_add(x, bias)))


def _fast_gelu(info: KernelInfo) -> KernelFn:
    def run(x: Array, bias: Array | None = None) -> Array:
        return fast_gelu(x if bias is None else _add(x, bias))

    return computing_wide(info, run)


def _quick_gelu(info: KernelInfo) -> KernelFn:
    """x * sigmoid(alpha * x)."""
    alpha = info.attr("alpha", 1.702)
    return computing_wide(info, lambda x: x * sigmoid(np.asarray(x * x.dtype.type(alpha))))


def _fused_matmul(info: KernelInfo) -> KernelFn:
    """alpha * op(A) @ op(B); transBatchA moves the batch in front of the last axis."""
    alpha = info.attr("alpha", 1.0)
    turn_a, turn_b = bool(info.attr("transA", 0)), bool(info.attr("transB", 0))
    empty = info.empty
    batch_a, batch_b = bool(info.attr("transBatchA", 0)), bool(info.attr("transBatchB", 0))

    def run(a: Array, b: Array) -> Array:
        result = matmul(_rotate(a, batch_a, turn_a), _rotate(b, batch_b, turn_b), empty)
        return result if alpha == 1 else np.asarray(result * result.dtype.type(alpha))

    return computing_wide(info, run)


def _rotate(x: Array, batch: bool, turn: bool) -> Array:  # noqa: FBT001 - two attributes
    if batch and x.ndim > 2:
        x = np.moveaxis(x, 0, -2)
    return np.asarray(x.swapaxes(-1, -2) if turn and x.ndim > 1 else x)


def _skip_layer_norm(info: KernelInfo) -> KernelFn:
    """LayerNormalization of input + skip + bias, which is the fourth output."""
    epsilon, outputs = info.attr("epsilon", 1e-12), info.n_outputs

    def run(
        x: Array, skip: Array, gamma: Array, beta: Array | None = None, bias: Array | None = None
    ) -> tuple[Array, ...]:
        total = _add(x, skip) if bias is None else _add(_add(x, skip), bias)
        y, mean, inverse = layer_norm(total, gamma, beta, -1, epsilon)
        return (y, mean, inverse, total)[:outputs]

    return run


def _skip_simplified(info: KernelInfo) -> KernelFn:
    """Root-mean-square normalisation of input + skip + bias, which is the fourth output."""
    epsilon, outputs = info.attr("epsilon", 1e-12), info.n_outputs

    def run(x: Array, skip: Array, gamma: Array, bias: Array | None = None) -> tuple[Array, ...]:
        total = _add(x, skip) if bias is None else _add(_add(x, skip), bias)
        y, inverse = _rms(total, gamma, epsilon)
        return (y, np.zeros(0, np.float32), inverse, total)[:outputs]

    return run


def _rms(x: Array, gamma: Array, epsilon: float) -> tuple[Array, Array]:
    wide = x.astype(np.float32, copy=False)
    inverse = 1 / np.sqrt(np.mean(wide * wide, -1, keepdims=True) + np.float32(epsilon))
    return np.asarray(_multiply(wide * inverse, gamma), x.dtype), inverse


def _simplified_layer_norm(info: KernelInfo) -> KernelFn:
    """Root-mean-square normalisation from `axis` on, and the inverse root: ORT's own operator."""
    axis, epsilon = int(info.attr("axis", -1)), float(info.attr("epsilon", 1e-5))

    def run(x: Array, scale: Array) -> tuple[Array, ...]:
        split = axis_in(axis, x.ndim)
        rows = widen_floats(x).reshape(*x.shape[:split], prod(x.shape[split:]))
        square = np.mean(rows * rows, -1, keepdims=True) + np.float32(epsilon)
        inverse = 1 / np.sqrt(square)
        y = _multiply((rows * inverse).reshape(x.shape), widen_floats(scale))
        shape = (*x.shape[:split], *(1,) * (x.ndim - split))
        return (y.astype(scale.dtype, copy=False), inverse.reshape(shape))[: info.n_outputs]

    return run


def _embed_layer_norm(info: KernelInfo) -> KernelFn:
    """Word, position and segment embeddings, added and normalised: EmbedLayerNormalization."""
    epsilon, outputs = info.attr("epsilon", 1e-12), info.n_outputs
    masks = int(info.attr("mask_index_type", 0))

    def run(*inputs: Array | None) -> tuple[Array, ...]:
        operands = (*inputs, *(None,) * (9 - len(inputs)))
        ids, segments, words, positions, kinds, gamma, beta, mask, places = operands
        assert ids is not None
        assert words is not None
        assert positions is not None
        assert gamma is not None
        rows = positions[: ids.shape[1]] if places is None else positions[places]
        total = words[ids] + rows
        if segments is not None and kinds is not None:
            total = total + kinds[segments]
        y, _, _ = layer_norm(total, gamma, beta, -1, epsilon)
        none = np.zeros(ids.shape[0], np.int32)
        index = none if mask is None or masks else mask.sum(1).astype(np.int32)
        return (y, index, total)[:outputs]

    return run


def _dequantize(x: Array | None, scale: Array | None, zero: Array | None) -> Array | None:
    """In float32; None if the table is omitted."""
    if x is None:
        return None
    assert scale is not None
    wide = x.astype(np.float32)
    return (wide if zero is None else wide - zero.astype(np.float32)) * scale


def _quantized_embed_layer_norm(info: KernelInfo) -> KernelFn:
    """QEmbedLayerNormalization-1: tables, gamma and beta are 8-bit, with scales and zero points."""
    normalize = _embed_layer_norm(info)

    def run(*inputs: Array | None) -> tuple[Array, ...]:
        operands = (*inputs, *(None,) * (18 - len(inputs)))
        ids, segments, mask = operands[0], operands[1], operands[7]
        tables = (_dequantize(operands[2 + i], operands[8 + i], operands[13 + i]) for i in range(5))
        words, positions, kinds, gamma, beta = tables
        result: tuple[Array, ...] = normalize(
            ids, segments, words, positions, kinds, gamma, beta, mask
        )
        return result

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("Gelu", domain=DOMAIN)(_gelu),
    kernel("BiasGelu", domain=DOMAIN)(_bias_gelu),
    kernel("FastGelu", domain=DOMAIN)(_fast_gelu),
    kernel("QuickGelu", domain=DOMAIN)(_quick_gelu),
    kernel("FusedMatMul", domain=DOMAIN)(_fused_matmul),
    kernel("TransposeMatMul", domain=DOMAIN)(_fused_matmul),
    kernel("SkipLayerNormalization", domain=DOMAIN)(_skip_layer_norm),
    kernel("SkipSimplifiedLayerNormalization", domain=DOMAIN)(_skip_simplified),
    kernel("EmbedLayerNormalization", domain=DOMAIN)(_embed_layer_norm),
    kernel("QEmbedLayerNormalization", domain=DOMAIN)(_quantized_embed_layer_norm),
    kernel("SimplifiedLayerNormalization", domain=DOMAIN)(_simplified_layer_norm),
    kernel("SimplifiedLayerNormalization")(
        _simplified_layer_norm
    ),  # ONNX Runtime puts it into ai.onnx
)

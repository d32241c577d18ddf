"""Operators that ai.onnx had on trial before opset 10, which ONNX Runtime still runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import computing_wide
from eps.cpu.kernels.activation import thresholded_relu
from eps.cpu.kernels.slicing import slice_kernel
from eps.cpu.kernels.unary import softplus
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def _affine(info: KernelInfo) -> KernelFn:
    """alpha * x + beta: Affine-1."""
    alpha, beta = float(info.attr("alpha", 1.0)), float(info.attr("beta", 0.0))
    return computing_wide(info, lambda x: np.asarray(x * x.dtype.type(alpha) + x.dtype.type(beta)))


def _scale(info: KernelInfo) -> KernelFn:
    """scale * x: Scale-1."""
    factor = float(info.attr("scale", 1.0))
    return computing_wide(info, lambda x: np.asarray(x * x.dtype.type(factor)))


def _parametric_softplus(info: KernelInfo) -> KernelFn:
    """alpha * log(exp(beta * x) + 1): ParametricSoftplus-1."""
    alpha, beta = float(info.attr("alpha", 1.0)), float(info.attr("beta", 1.0))
    return computing_wide(
        info,
        lambda x: np.asarray(softplus(np.asarray(x * x.dtype.type(beta))) * x.dtype.type(alpha)),
    )


def _scaled_tanh(info: KernelInfo) -> KernelFn:
    """alpha * tanh(beta * x): ScaledTanh-1."""
    alpha, beta = float(info.attr("alpha", 1.0)), float(info.attr("beta", 1.0))
    return computing_wide(
        info, lambda x: np.asarray(np.tanh(x * x.dtype.type(beta)) * x.dtype.type(alpha))
    )


def _image_scaler(info: KernelInfo) -> KernelFn:
    """scale * x plus a bias for each channel of [N, C, H, W]: ImageScaler-1."""
    factor = np.float32(info.attr("scale", 1.0))
    bias = np.array(info.attr("bias") or [], np.float32)

    def run(x: Array) -> Array:
        if bias.size != x.shape[1]:
            raise ValueError(f"{bias.size} biases for {x.shape[1]} channels")
        return np.asarray(x * factor + bias[:, None, None])

    return computing_wide(info, run)


def _crop(info: KernelInfo) -> KernelFn:
    """[N, C, H, W] without borders (left, top, right, bottom), or of a size from there: Crop-1."""
    left, top, right, bottom = info.attr("border")
    scale = info.attr("scale")

    def run(x: Array) -> Array:
        height, width = x.shape[2] - bottom - top, x.shape[3] - right - left
        if scale:
            height, width = scale
        if top + height > x.shape[2] or left + width > x.shape[3] or min(height, width) < 0:
            raise ValueError(f"a part of {height} x {width} at {top}, {left} of {x.shape}")
        return x[:, :, top : top + height, left : left + width].copy()

    return run


def _mean_variance(info: KernelInfo) -> KernelFn:
    """(x - mean) / deviation of each channel, or of all together: MeanVarianceNormalization-1."""
    axes = (0, 1, 2, 3) if info.attr("across_channels", 0) else (0, 2, 3)
    by_deviation = bool(info.attr("normalize_variance", 1))

    def run(x: Array) -> Array:
        result = x - np.mean(x, axis=axes, keepdims=True)
        if by_deviation:
            deviation = np.sqrt(np.mean(np.square(result), axis=axes, keepdims=True))
            result /= deviation + x.dtype.type(1e-9)
        return np.asarray(result)

    return computing_wide(info, run)


KERNELS: tuple[KernelDef, ...] = (
    kernel("Affine")(_affine),
    kernel("Crop")(_crop),
    kernel("Scale")(_scale),
    kernel("ParametricSoftplus")(_parametric_softplus),
    kernel("ScaledTanh")(_scaled_tanh),
    kernel("ImageScaler")(_image_scaler),
    kernel("MeanVarianceNormalization")(_mean_variance),
    kernel("ThresholdedRelu")(thresholded_relu),
    kernel("DynamicSlice")(slice_kernel),
)

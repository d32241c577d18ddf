"""com.microsoft convolutions and products with an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.kernels.conv import conv_kernel
from eps.cpu.kernels.matmul import gemm_kernel
from eps.cpu.kernels.unary import relu, sigmoid
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "com.microsoft"


def _activation(info: KernelInfo, parameters: Sequence[float]) -> Callable[[Array], Array]:
    """The function that `activation` names, in place: fused_activation.cc.

    Raises:
        ValueError: ONNX Runtime does not fuse that.
    """
    name = info.attr("activation", "")
    first, second = (*parameters, 0.0, 0.0)[:2]
    simple: dict[str, Callable[[Array], Array]] = {
        "": lambda y: y,
        "Relu": lambda y: relu(y, y),
        "Tanh": lambda y: np.tanh(y, out=y),
        "Sigmoid": lambda y: sigmoid(y, y),
        "LeakyRelu": lambda y: np.where(y < 0, y * np.float32(first), y),
        "Clip": lambda y: y.clip(first, second, out=y),
        "HardSigmoid": lambda y: (y * np.float32(first) + np.float32(second)).clip(0, 1),
    }
    if name not in simple:
        raise ValueError(f"{info.op_type}: activation '{name}' is not one of {sorted(simple)[1:]}")
    return simple[name]


def _fused_conv(info: KernelInfo) -> KernelFn:
    """Conv, plus a tensor Z, through an activation: FusedConv-1."""
    convolution = conv_kernel(info)
    activate = _activation(info, info.attr("activation_params") or ())

    def run(x: Array, w: Array, bias: Array | None = None, z: Array | None = None) -> Array:
        y = convolution(x, w, bias)
        if z is not None:
            if z.shape != y.shape:
                raise ValueError(f"Z of shape {z.shape} is added to {y.shape}")
            y += z
        return np.asarray(activate(y))

    return run


def _fused_gemm(info: KernelInfo) -> KernelFn:
    """Gemm through an activation: FusedGemm-1."""
    product = gemm_kernel(info)
    parameters = (info.attr("activation_alpha", 0.0), info.attr("activation_beta", 0.0))
    activate = _activation(info, parameters)
    return lambda a, b, c=None: np.asarray(activate(product(a, b, c)))


KERNELS: tuple[KernelDef, ...] = (
    kernel("FusedConv", domain=DOMAIN)(_fused_conv),
    kernel("FusedGemm", domain=DOMAIN)(_fused_gemm),
)

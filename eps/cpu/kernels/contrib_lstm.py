"""LSTM with int8 weights and activations quantised on the fly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.kernels.unary import sigmoid
from eps.cpu.recurrent import Recurrence
from ort_lite.kernel_registry import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.kernel_registry import KernelFn, KernelInfo


def quantized_steps(x: Array) -> tuple[Array, Array]:
    """`x` as DynamicQuantizeLinear-11 sees it: (q - zero point) in float32, and the scale."""
    low, high = min(0.0, float(x.min(initial=0))), max(0.0, float(x.max(initial=0)))
    scale = np.array((high - low) / 255 or 1, np.float32)
    zero = np.rint(np.clip(-low / scale, 0, 255)).astype(np.float32)
    return np.asarray(np.clip(np.rint(x / scale) + zero, 0, 255) - zero), scale


@dataclass(frozen=True, slots=True)
class _Weights:
    """One direction's weights [K, 4 * H] without their zero points, and their scales."""

    steps: Array
    scale: Array

    def times(self, x: Array) -> Array:
        """x [M, K], quantised as a whole, times the weights."""
        steps, scale = quantized_steps(x)
        return np.asarray((steps @ self.steps) * (scale * self.scale))


@dataclass(frozen=True, slots=True)
class _Cell:
    """Gates i, o, f, c of LSTM-1."""

    w: _Weights
    r: _Weights
    bias: Array | None

    def project(self, x: Array) -> Array:
        flat = self.w.times(x.reshape(-1, x.shape[2]))
        if self.bias is not None:
            flat += self.bias
        return flat.reshape(*x.shape[:2], flat.shape[1])

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        old, c = states
        i, o, f, new = np.split(projected + self.r.times(old), 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(new)
        return sigmoid(o) * np.tanh(c), c


def _dynamic_quantize_lstm(info: KernelInfo) -> KernelFn | None:
    """com.microsoft DynamicQuantizeLSTM-1 with the LSTM's own activations."""
    odd = ("activations", "activation_alpha", "activation_beta", "clip", "input_forget")
    if any(info.has_attr(name) for name in odd) or (info.n_inputs > 7 and info.node.inputs[7]):
        return None
    recurrence = Recurrence.of(info)

    def run(*inputs: Array | None) -> tuple[Array, ...]:
        given = (*inputs, *(None,) * (12 - len(inputs)))
        x, w, r, b, lengths, h, c, _, w_scale, w_zero, r_scale, r_zero = given
        assert x is not None
        assert w is not None
        assert r is not None
        hidden = r.shape[1]
        cells = []
        for d in range(w.shape[0]):
            bias = None if b is None else b[d, : 4 * hidden] + b[d, 4 * hidden :]
            cells.append(
                _Cell(_weights(w, w_scale, w_zero, d), _weights(r, r_scale, r_zero, d), bias)
            )
        return recurrence.run(cells, x, lengths, [h, c], hidden)

    return run


def _weights(values: Array, scale: Array | None, zero: Array | None, direction: int) -> _Weights:
    """Scale and zero point are per direction, or per direction and column."""
    steps = values[direction].astype(np.float32)
    if zero is not None:
        steps -= zero[direction].astype(np.float32)
    return _Weights(steps, np.ones((), np.float32) if scale is None else scale[direction])


KERNELS: tuple[KernelDef, ...] = (
    kernel("DynamicQuantizeLSTM", domain="com.microsoft")(_dynamic_quantize_lstm),
)

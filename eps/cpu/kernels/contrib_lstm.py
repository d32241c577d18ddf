"""LSTM with int8 weights and activations quantised on the fly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.recurrent import Recurrence, default_activations
from eps.cpu.recurrent_cells import lstm_states, project_all
from ort_lite.kernel_registry import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.kernel_registry import KernelFn, KernelInfo

WEIGHTS = (1, 2, 3, 8, 9, 10, 11)
"""Inputs W, R, B, then scale and zero point of W, and of R."""

_LEAST_SCALE = np.float32(1e-30)
"""For a tensor of zeros, whose steps are 0 by any scale."""


def quantized_steps(x: Array) -> tuple[Array, Array]:
    """`x` as DynamicQuantizeLinear-11 sees it: (q - zero point) in float32, and the scale."""
    steps, scale = quantized_each(x.reshape(1, -1))
    return steps.reshape(x.shape), scale.reshape(())


def quantized_each(rows: Array) -> tuple[Array, Array]:
    """`quantized_steps` of every row of [D, n] by itself; scales are [D, 1]."""
    low = np.minimum.reduce(rows, 1, keepdims=True, initial=0)
    high = np.maximum.reduce(rows, 1, keepdims=True, initial=0)
    scale = high - low
    scale /= np.float32(255)
    np.maximum(scale, _LEAST_SCALE, out=scale)
    low /= scale
    zero = np.rint(np.negative(low, out=low), out=low)
    steps = rows / scale
    np.rint(steps, out=steps)
    np.maximum(steps, -zero, out=steps)
    return np.minimum(steps, np.float32(255) - zero, out=steps), scale


def _weights(values: Array, scale: Array | None, zero: Array | None) -> Array:
    """int8 weights [D, K, 4 * H] as numbers, those of the gates i, o and f halved.

    Scale and zero point are per direction, or per direction and column.
    """
    count = values.shape[0]
    result = values.astype(np.float32)
    if zero is not None:
        result -= zero.reshape(count, 1, -1).astype(np.float32)
    if scale is not None:
        result *= scale.reshape(count, 1, -1)
    result *= _halves(result.shape[2])
    return result


def _halves(width: int) -> Array:
    """1/2 for the gates i, o and f, 1 for c."""
    result = np.full(width, 0.5, np.float32)
    result[3 * (width // 4) :] = 1
    return result


@dataclass(frozen=True, slots=True)
class _Cell:
    """Gates i, o, f, c of LSTM-1, all directions; halved as in recurrent_cells."""

    w: Array
    r: Array
    bias: Array | None

    @classmethod
    def of(cls, weights: Sequence[Array | None]) -> _Cell:
        """From the inputs that WEIGHTS lists."""
        w, r, b, w_scale, w_zero, r_scale, r_zero = weights
        assert w is not None
        assert r is not None
        bias = None
        if b is not None:
            half = b.shape[1] // 2
            bias = (b[:, :half] + b[:, half:])[:, None] * _halves(half)
        return cls(_weights(w, w_scale, w_zero), _weights(r, r_scale, r_zero), bias)

    def project(self, x: Array) -> Array:
        steps, scale = quantized_steps(x)
        return project_all(steps * scale, self.w, self.bias)

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        old, c = states
        steps, scale = quantized_each(old.reshape(old.shape[0], -1))
        steps *= scale
        gates = np.matmul(steps.reshape(old.shape), self.r)
        gates += projected
        return lstm_states(gates, c)


def _dynamic_quantize_lstm(info: KernelInfo) -> KernelFn | None:
    """com.microsoft DynamicQuantizeLSTM-1 with the LSTM's own activations."""
    if not default_activations(info, ("Sigmoid", "Tanh", "Tanh")):
        return None
    if info.attr("clip", 0) or info.attr("input_forget", 0) or any(info.node.inputs[7:8]):
        return None
    recurrence = Recurrence.of(info)
    prepared = None
    given = [i for i in WEIGHTS if i < info.n_inputs and info.node.inputs[i]]
    if all(info.constant(i) is not None for i in given):
        prepared = _Cell.of([info.constant(i) for i in WEIGHTS])

    def run(*inputs: Array | None) -> tuple[Array, ...]:
        values = (*inputs, *(None,) * (12 - len(inputs)))
        x, r = values[0], values[2]
        assert x is not None
        assert r is not None
        cell = prepared or _Cell.of([values[i] for i in WEIGHTS])
        return recurrence.run_stacked(cell, x, values[4], values[5:7], r.shape[1])

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("DynamicQuantizeLSTM", domain="com.microsoft")(_dynamic_quantize_lstm),
)

"""LSTM with int8 weights and activations quantised on the fly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.recurrent import Recurrence, default_activations
from eps.cpu.recurrent_cells import by_gate, lstm_states, project_all
from ort_lite.kernel_registry import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.kernel_registry import KernelFn, KernelInfo

WEIGHTS = (1, 2, 3, 8, 9, 10, 11)
"""Inputs W, R, B, then scale and zero point of W, and of R."""

_MOST_STEPS = np.float32(255)
_LEAST_SCALE = np.float32(1e-30)
"""For a tensor of zeros, whose steps are 0 by any scale."""


def quantized_steps(x: Array) -> tuple[Array, Array]:
    """`x` as DynamicQuantizeLinear-11 sees it: (q - zero point) in float32, and the scale."""
    steps, scale = quantized_each(x.reshape(1, -1))
    return steps.reshape(x.shape), scale.reshape(())


def quantized_each(rows: Array) -> tuple[Array, Array]:
    """`quantized_steps` of every row of [D, n] by itself; scales are [D, 1].

    No step is below the lowest value's, since division and rounding keep order: only the upper
    end is cut, where both ends were rounded outwards.
    """
    low = np.minimum.reduce(rows, 1, keepdims=True, initial=0)
    scale = np.maximum.reduce(rows, 1, keepdims=True, initial=0)
    scale -= low
    scale /= _MOST_STEPS
    np.maximum(scale, _LEAST_SCALE, out=scale)
    low /= scale
    np.rint(low, out=low)  # the zero point, negated
    low += _MOST_STEPS
    steps = rows / scale
    np.rint(steps, out=steps)
    return np.minimum(steps, low, out=steps), scale


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
    """Gates i, o, f, c of LSTM-1, all directions; halved and by gate as in recurrent_cells."""

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
            bias = by_gate((b[:, :half] + b[:, half:])[:, None] * _halves(half), 4)
        recurrent = by_gate(_weights(r, r_scale, r_zero), 4)
        return cls(_weights(w, w_scale, w_zero), recurrent, bias)

    def project(self, x: Array) -> Array:
        steps, scale = quantized_steps(x)
        steps *= scale
        return project_all(steps, self.w, self.bias, 4)

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

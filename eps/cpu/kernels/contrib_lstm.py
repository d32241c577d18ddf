"""LSTM with int8 weights and activations quantised on the fly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.dynamic_quantization import RowQuantizer, quantize_dynamically
from eps.cpu.recurrent import Recurrence, default_activations, walk
from eps.cpu.recurrent_cells import LstmGates, lstm_bias, lstm_integers, lstm_scales, project_all
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

WEIGHTS = (1, 2, 3, 8, 9, 10, 11)
"""Inputs W, R, B, then scale and zero point of W, and of R."""


def _scales(scale: Array | None) -> Array:
    return lstm_scales(np.ones(1, np.float32) if scale is None else scale)


@dataclass(frozen=True, slots=True)
class _Cell:
    """See StackedCell.

    Products are those of whole numbers, which float32 holds exactly up to a depth of 518, and are
    scaled afterwards: an error of one part in 10^7 in a state now and then quantises it to another
    step, whereupon the sequence takes another course.
    """

    w: Array
    w_scale: Array
    r: Array
    r_scale: Array
    bias: Array | None

    @classmethod
    def of(cls, weights: Sequence[Array | None]) -> _Cell:
        """From the inputs that WEIGHTS lists."""
        w, r, b, w_scale, w_zero, r_scale, r_zero = weights
        assert w is not None
        assert r is not None
        return cls(
            *(lstm_integers(w, w_zero), _scales(w_scale)),
            *(lstm_integers(r, r_zero), _scales(r_scale)),
            lstm_bias(b),
        )

    def project(self, x: Array) -> Array:
        """See StackedCell."""
        steps, scale = quantize_dynamically(x)
        sums = project_all(steps, self.w, None)
        sums *= self.w_scale * scale
        if self.bias is not None:
            sums += self.bias
        return sums

    def stepper(self, memory: Sequence[Array]) -> _Stepper:
        """See StackedCell."""
        return _Stepper(self, memory[0])


class _Stepper:
    """See Stepper."""

    def __init__(self, weights: _Cell, cell: Array) -> None:
        self._r_scale = weights.r_scale
        self._gates = LstmGates(cell, weights.r)
        self._quantizer = RowQuantizer(cell.shape[0])
        self._h = np.empty(cell.shape, np.float32)
        self._rows = self._h.reshape(cell.shape[0], -1)
        self.memory: tuple[Array, ...] = (self._gates.cell,)

    def step(self, projected: Array, h: Array, out: Array) -> None:
        rows, sums = self._rows, self._gates.sums
        scale = self._quantizer.quantize(h.reshape(rows.shape), rows)
        self._gates.multiply(self._h)
        np.multiply(sums, self._r_scale * scale[:, :, None], sums)
        np.add(sums, projected, sums)
        self._gates.close(out)


def _dynamic_quantize_lstm(info: KernelInfo) -> KernelFn | None:
    """com.microsoft DynamicQuantizeLSTM-1 with the LSTM's own activations."""
    if not default_activations(info, ("Sigmoid", "Tanh", "Tanh")):
        return None
    if info.attr("clip", 0) or info.attr("input_forget", 0) or any(info.node.inputs[7:8]):
        return None
    recurrence = Recurrence.of(info)
    prepared = None
    present = [i for i in WEIGHTS if i < info.n_inputs and info.node.inputs[i]]
    if all(info.constant(i) is not None for i in present):
        prepared = _Cell.of([info.constant(i) for i in WEIGHTS])

    def run(*inputs: Array | None) -> tuple[Array, ...]:
        values = (*inputs, *(None,) * (12 - len(inputs)))
        x, r = values[0], values[2]
        assert x is not None
        assert r is not None
        cell = prepared or _Cell.of([values[i] for i in WEIGHTS])
        return walk(recurrence, cell, x, values[4], values[5:7], r.shape[1])

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("DynamicQuantizeLSTM", domain="com.microsoft")(_dynamic_quantize_lstm),
)

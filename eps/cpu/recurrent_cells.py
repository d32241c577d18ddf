"""RNN, GRU and LSTM with the operators' own activations, all directions in one step.

Sums that go into a sigmoid are halved beforehand, in weights and biases: sigmoid(x) is
tanh(x / 2) / 2 + 1/2, so that one tanh serves all gates. Each gate's sums are contiguous in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu import few_rows
from eps.cpu.arrays import allocate_aligned, allocate_checked
from eps.cpu.shared_products import multiply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array

_ONNX_LSTM = (1, 0, 2, 3)
"""Order of ONNX's gates i, o, f, c in memory: o is needed last; i and f precede their factors."""

_HALF = np.float32(0.5)


def by_gate(values: Array, gates: int, smooth: int) -> Array:
    """A copy of weights [D, gates * H, K] as [gates, D, K, H].

    Args:
        values: As the node gets them.
        gates: How many gates there are.
        smooth: How many of them, from the first on, go into a sigmoid: they are halved.
    """
    parts = values.reshape(values.shape[0], gates, -1, values.shape[2])
    ordered = parts.transpose(1, 0, 3, 2)
    result = allocate_aligned(ordered.shape, values.dtype)
    np.copyto(result, ordered)
    result[:smooth] *= _HALF
    return result


def bias_by_gate(b: Array, gates: int, smooth: int) -> Array:
    """Biases [D, gates * H] as [gates, D, 1, H], halved as in `by_gate`."""
    return by_gate(b[:, :, None], gates, smooth)


def both_halves(b: Array) -> Array:
    """The biases of input and state [D, 2 * n], added up."""
    size = b.shape[1] // 2
    return np.asarray(b[:, :size] + b[:, size:])


def project_all(x: Array, w: Array, bias: Array | None) -> Array:
    """x [D, T, B, I] times w [gates, D, I, H], plus bias: a view [T, gates, D, B, H]."""
    ways, steps, batch, size = x.shape
    gates, _, _, hidden = w.shape
    sums = allocate_checked((gates, ways, steps * batch, hidden), w.dtype)
    multiply(x.reshape(ways, -1, size), w, sums)
    if bias is not None:
        np.add(sums, bias, sums)
    return sums.reshape(gates, ways, steps, batch, hidden).transpose(2, 0, 1, 3, 4)


class LstmGates:
    """Memory of one walk of an LSTM, whose gates are in the order o, i, f, c.

    Attributes:
        sums: [4, D, B, H], to be filled with what goes into the gates.
        cell: [D, B, H], the cell's state.
    """

    def __init__(self, cell: Array) -> None:
        """Begin with this state of the cell, which is copied."""
        room = np.empty((5, *cell.shape), cell.dtype)
        self.sums, self.cell = room[:4], room[4]
        self.cell[...] = cell
        self._output, self._smooth = room[0], room[:3]
        self._factors, self._values = room[1:3], room[3:]  # i times candidate, f times cell
        self._products = np.empty((2, *cell.shape), cell.dtype)
        self._squashed = self._products[0]

    def close(self, out: Array) -> None:
        """From the sums to the next state of the cell, and the output into `out`."""
        np.tanh(self.sums, self.sums)
        self._smooth *= _HALF
        self._smooth += _HALF
        np.multiply(self._factors, self._values, self._products)
        np.add(self._products[0], self._products[1], self.cell)
        np.tanh(self.cell, self._squashed)
        np.multiply(self._squashed, self._output, out)


def lstm_weights(values: Array) -> Array:
    """[D, 4 * H, K] of gates i, o, f, c as [4, D, K, H] of o, i, f, c, prepared for LstmGates."""
    ways, size, depth = values.shape
    ordered = values.reshape(ways, 4, size // 4, depth)[:, _ONNX_LSTM]
    return by_gate(ordered.reshape(values.shape), 4, 3)


def lstm_bias(b: Array | None) -> Array | None:
    """[D, 8 * H] as [4, D, 1, H], likewise."""
    return None if b is None else lstm_weights(both_halves(b)[:, :, None])


def lstm_scales(scale: Array) -> Array:
    """Scales of weights, [D] or [D, 4 * H], as [1, D, 1, 1] or [4, D, 1, H]; none is halved."""
    ways = scale.shape[0]
    if scale.size == ways:
        return scale.reshape(1, ways, 1, 1)
    ordered = scale.reshape(ways, 4, 1, -1)[:, _ONNX_LSTM]
    return np.ascontiguousarray(ordered.swapaxes(0, 1))


@dataclass(frozen=True, slots=True)
class _PlainCell:
    """Weights of input and state by gate, and the sum of both biases; see StackedCell."""

    w: Array
    r: Array
    bias: Array | None

    def project(self, x: Array) -> Array:
        """See StackedCell."""
        return project_all(x, self.w, self.bias)


class PlainLstm(_PlainCell):
    """LSTM without peepholes; weights [4, D, I, H] and [4, D, H, H]."""

    __slots__ = ()

    @classmethod
    def of(cls, w: Array, r: Array, b: Array | None) -> PlainLstm:
        """From the node's inputs [D, 4 * H, I], [D, 4 * H, H] and [D, 8 * H]."""
        return cls(lstm_weights(w), lstm_weights(r), lstm_bias(b))

    def stepper(self, memory: Sequence[Array]) -> PlainLstmStepper:
        """See StackedCell."""
        return PlainLstmStepper(self.r, memory[0])


class PlainLstmStepper:
    """See Stepper."""

    def __init__(self, r: Array, cell: Array) -> None:
        """Begin with this state of the cell."""
        self._r = r
        self._gates = LstmGates(cell)
        self.memory: tuple[Array, ...] = (self._gates.cell,)

    def step(self, projected: Array, h: Array, out: Array) -> None:
        """See Stepper."""
        sums = self._gates.sums
        few_rows.multiply(h, self._r, sums)
        np.add(sums, projected, sums)
        self._gates.close(out)


@dataclass(frozen=True, slots=True)
class PlainGru(_PlainCell):
    """GRU; weights [3, D, I, H] and [3, D, H, H] of the gates z, r and h.

    Attributes:
        rb_h: [D, 1, H], the hidden gate's recurrent bias where reset comes last.
    """

    rb_h: Array | None
    reset_last: bool

    @classmethod
    def of(cls, w: Array, r: Array, b: Array | None, *, reset_last: bool) -> PlainGru:
        """From the node's inputs [D, 3 * H, I], [D, 3 * H, H] and [D, 6 * H]."""
        size = r.shape[2]
        bias = rb_h = None
        if b is not None:
            summed = both_halves(b)
            if reset_last:
                rb_h = np.ascontiguousarray(b[:, None, 5 * size :])
                summed[:, 2 * size :] = b[:, 2 * size : 3 * size]
            bias = bias_by_gate(summed, 3, 2)
        return cls(by_gate(w, 3, 2), by_gate(r, 3, 2), bias, rb_h, reset_last)

    def stepper(self, memory: Sequence[Array]) -> PlainGruStepper:  # noqa: ARG002 - has none
        """See StackedCell."""
        return PlainGruStepper(self)


class PlainGruStepper:
    """See Stepper."""

    def __init__(self, cell: PlainGru) -> None:
        """Memory is allocated by the first step, from which the batch size is known."""
        self._cell = cell
        self._room: Array | None = None
        self.memory: tuple[Array, ...] = ()

    def step(self, projected: Array, h: Array, out: Array) -> None:
        """See Stepper."""
        cell = self._cell
        if self._room is None:
            self._room = np.empty(projected.shape, projected.dtype)
        smooth, candidate = self._room[:2], self._room[2]
        if cell.reset_last:
            few_rows.multiply(h, cell.r, self._room)
        else:
            few_rows.multiply(h, cell.r[:2], smooth)
        smooth += projected[:2]
        np.tanh(smooth, smooth)
        smooth *= _HALF
        smooth += _HALF
        z, r = smooth
        if cell.reset_last:
            if cell.rb_h is not None:
                candidate += cell.rb_h
            candidate *= r
        else:
            few_rows.multiply(np.multiply(r, h, r), cell.r[2], candidate)
        candidate += projected[2]
        np.tanh(candidate, candidate)
        np.subtract(h, candidate, out)
        out *= z
        out += candidate


class PlainRnn(_PlainCell):
    """RNN with tanh; weights [1, D, I, H] and [D, H, H]."""

    __slots__ = ()

    @classmethod
    def of(cls, w: Array, r: Array, b: Array | None) -> PlainRnn:
        """From the node's inputs [D, H, I], [D, H, H] and [D, 2 * H]."""
        bias = None if b is None else bias_by_gate(both_halves(b), 1, 0)
        return cls(by_gate(w, 1, 0), by_gate(r, 1, 0)[0], bias)

    def project(self, x: Array) -> Array:
        """See StackedCell."""
        return project_all(x, self.w, self.bias)[:, 0]

    def stepper(self, memory: Sequence[Array]) -> PlainRnnStepper:  # noqa: ARG002 - has none
        """See StackedCell."""
        return PlainRnnStepper(self.r)


class PlainRnnStepper:
    """See Stepper."""

    def __init__(self, r: Array) -> None:
        """Nothing is kept from step to step."""
        self._r = r
        self.memory: tuple[Array, ...] = ()

    def step(self, projected: Array, h: Array, out: Array) -> None:
        """See Stepper."""
        few_rows.multiply(h, self._r, out)
        out += projected
        np.tanh(out, out)

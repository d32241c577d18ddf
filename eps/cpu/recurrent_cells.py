"""RNN, GRU and LSTM with the operators' own activations, or gates of HardSigmoid as in Keras.

All directions make one step together.

Sums that go into a sigmoid are halved beforehand, in weights and biases: sigmoid(x) is
tanh(x / 2) / 2 + 1/2, so that one tanh serves all gates.

The sums of one row, or of a few with large weights, are one product for all gates, which reads the
weights at the speed of the cache: a product for each gate takes up to twice as long. Those of more
rows are contiguous by gate, since what follows is then one loop of numpy's over each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from eps.cpu import few_rows
from eps.cpu.arrays import allocate_aligned, allocate_checked
from eps.cpu.shared_products import multiply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.cpu.arrays import Array

_ONNX_LSTM = (1, 0, 2, 3)
"""Order of ONNX's gates i, o, f, c in memory: o is needed last; i and f precede their factors."""

COLUMNS = 64
"""Of weights that are transposed at a time."""
_HALF = np.float32(0.5)


@dataclass(frozen=True, slots=True)
class HardSigmoid:
    """max(0, min(1, alpha * x + beta)), of ONNX's recurrent operators, in place of sigmoid(x)."""

    alpha: float = 0.2
    beta: float = 0.5

    def apply(self, halves: Array) -> None:
        """In place, to halves of x."""
        halves *= 2 * self.alpha
        halves += self.beta
        np.maximum(halves, 0, out=halves)
        np.minimum(halves, 1, out=halves)


def by_gate(values: Array, order: Sequence[int], smooth: int) -> Array:
    """A copy of weights [D, gates * H, K] as [gates, D, K, H]; a row has those of all gates.

    Args:
        values: As the node gets them.
        order: Which of the node's gates comes first, and so on.
        smooth: How many of them, from the first on, go into a sigmoid: they are halved.
    """
    ways, size, depth = values.shape
    gates = values.reshape(ways, len(order), size // len(order), depth)
    rows = allocate_aligned((ways, depth, len(order), size // len(order)), values.dtype)
    # Columns of a few lines at a time, which stay in the cache until all their rows are written.
    for way, (place, gate) in product(range(ways), enumerate(order)):
        for first in range(0, gates.shape[2], COLUMNS):
            part = slice(first, first + COLUMNS)
            rows[way, :, place, part] = gates[way, gate, part].T
    result = rows.transpose(2, 0, 1, 3)
    result[:smooth] *= _HALF
    return result


def bias_by_gate(b: Array, order: Sequence[int], smooth: int) -> Array:
    """Biases [D, gates * H] as [gates, D, 1, H], halved as in `by_gate`."""
    return by_gate(b[:, :, None], order, smooth)


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


class GateRoom:
    """Memory for what goes into gates in one step, and more.

    Attributes:
        parts: [count, D, B, H], a part for each gate from the first on.
    """

    def __init__(self, count: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Make room for `count` parts of shape [D, B, H]."""
        ways, batch, size = shape
        self._by_row = batch == 1 or few_rows.is_few(batch, size * size)
        if self._by_row:
            self.parts = np.empty((ways, batch, count, size), dtype).transpose(2, 0, 1, 3)
        else:
            self.parts = np.empty((count, *shape), dtype)

    def product(self, weights: Array, first: int, last: int) -> Callable[[Array], object]:
        """A function of a state [D, B, K] that multiplies it with the weights of some gates.

        Args:
            weights: As `by_gate` gives them.
            first: Gate that the product begins with; its sums go into the part of that number.
            last: The gate behind the last one.
        """
        factor, sums = weights[first:last], self.parts[first:last]
        if self._by_row:
            factor, sums = _join(factor), _join(sums)
        return partial(_multiply_state, factor=factor, sums=sums)


def _join(parts: Array) -> Array:
    """[gates, D, K, H] of which each row is in one piece as a view [D, K, gates * H]."""
    count, ways, depth, size = parts.shape
    assert parts.strides[0] == size * parts.itemsize, "a row has all gates"
    strides = (*parts.strides[1:3], parts.itemsize)
    return as_strided(parts, (ways, depth, count * size), strides)


def _multiply_state(h: Array, factor: Array, sums: Array) -> None:
    few_rows.multiply(h, factor, sums)


class LstmGates:
    """Memory of one walk of an LSTM, whose gates are in the order o, i, f, c.

    Attributes:
        sums: [4, D, B, H], to be filled with what goes into the gates.
        cell: [D, B, H], the cell's state.
        multiply: Fills `sums` with products of a state and the weights.
    """

    def __init__(self, cell: Array, weights: Array, hard: HardSigmoid | None = None) -> None:
        """Begin with this state of the cell, which is copied."""
        self._hard = hard
        memory = GateRoom(5, cell.shape, cell.dtype)
        room = memory.parts
        self.sums, self.cell = room[:4], room[4]
        self.cell[...] = cell
        self.multiply = memory.product(weights, 0, 4)
        self._output, self._smooth = room[0], room[:3]
        self._factors, self._values = room[1:3], room[3:]  # i times candidate, f times cell
        self._products = np.empty((2, *cell.shape), cell.dtype)
        self._squashed = self._products[0]

    def close(self, out: Array) -> None:
        """From the sums to the next state of the cell, and the output into `out`."""
        if self._hard is None:
            np.tanh(self.sums, self.sums)
            self._smooth *= _HALF
            self._smooth += _HALF
        else:
            self._hard.apply(self._smooth)
            np.tanh(self.sums[3], self.sums[3])
        np.multiply(self._factors, self._values, self._products)
        np.add(self._products[0], self._products[1], self.cell)
        np.tanh(self.cell, self._squashed)
        np.multiply(self._squashed, self._output, out)


def lstm_weights(values: Array) -> Array:
    """[D, 4 * H, K] of gates i, o, f, c as [4, D, K, H] of o, i, f, c, prepared for LstmGates."""
    return by_gate(values, _ONNX_LSTM, 3)


def lstm_integers(values: Array, zero: Array | None) -> Array:
    """int8 [D, K, 4 * H] without their zero points, as float32 that `lstm_weights` would give.

    Args:
        values: Gates i, o, f, c side by side.
        zero: Of each direction, or of each of its columns; None for 0.
    """
    ways, depth, size = values.shape
    gates = values.reshape(ways, depth, 4, size // 4)
    rows = allocate_aligned(gates.shape, np.dtype(np.float32))
    for place, gate in enumerate(_ONNX_LSTM):
        rows[:, :, place] = gates[:, :, gate]
    result = rows.transpose(2, 0, 1, 3)
    if zero is not None:
        result -= lstm_scales(zero.astype(np.float32))
    result[:3] *= _HALF
    return result


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
    """Weights of input and state by gate, and the sum of both biases; see StackedCell.

    Attributes:
        hard: What gates have in place of the sigmoid.
    """

    w: Array
    r: Array
    bias: Array | None
    hard: HardSigmoid | None

    def project(self, x: Array) -> Array:
        """See StackedCell."""
        return project_all(x, self.w, self.bias)


class PlainLstm(_PlainCell):
    """LSTM without peepholes; weights [4, D, I, H] and [4, D, H, H]."""

    __slots__ = ()

    @classmethod
    def of(
        cls, w: Array, r: Array, b: Array | None, *, hard: HardSigmoid | None = None
    ) -> PlainLstm:
        """From the node's inputs [D, 4 * H, I], [D, 4 * H, H] and [D, 8 * H]."""
        return cls(lstm_weights(w), lstm_weights(r), lstm_bias(b), hard)

    def stepper(self, memory: Sequence[Array]) -> PlainLstmStepper:
        """See StackedCell."""
        return PlainLstmStepper(self, memory[0])


class PlainLstmStepper:
    """See Stepper."""

    def __init__(self, weights: PlainLstm, cell: Array) -> None:
        """Begin with this state of the cell."""
        self._gates = LstmGates(cell, weights.r, weights.hard)
        self.memory: tuple[Array, ...] = (self._gates.cell,)

    def step(self, projected: Array, h: Array, out: Array) -> None:
        """See Stepper."""
        gates = self._gates
        gates.multiply(h)
        np.add(gates.sums, projected, gates.sums)
        gates.close(out)


@dataclass(frozen=True, slots=True)
class PlainGru(_PlainCell):
    """GRU; weights [3, D, I, H] and [3, D, H, H] of the gates z, r and h.

    Attributes:
        rb_h: [D, 1, H], the hidden gate's recurrent bias where reset comes last.
    """

    rb_h: Array | None
    reset_last: bool

    @classmethod
    def of(
        cls,
        w: Array,
        r: Array,
        b: Array | None,
        *,
        reset_last: bool,
        hard: HardSigmoid | None = None,
    ) -> PlainGru:
        """From the node's inputs [D, 3 * H, I], [D, 3 * H, H] and [D, 6 * H]."""
        size = r.shape[2]
        bias = rb_h = None
        if b is not None:
            summed = both_halves(b)
            if reset_last:
                rb_h = np.ascontiguousarray(b[:, None, 5 * size :])
                summed[:, 2 * size :] = b[:, 2 * size : 3 * size]
            bias = bias_by_gate(summed, range(3), 2)
        return cls(by_gate(w, range(3), 2), by_gate(r, range(3), 2), bias, hard, rb_h, reset_last)

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

    def _make_room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        memory, weights = GateRoom(3, shape, dtype), self._cell.r
        self._first = memory.product(weights, 0, 3 if self._cell.reset_last else 2)
        self._last = memory.product(weights, 2, 3)
        return memory.parts

    def step(self, projected: Array, h: Array, out: Array) -> None:
        """See Stepper."""
        cell = self._cell
        if self._room is None:
            self._room = self._make_room(projected.shape[1:], projected.dtype)
        smooth, candidate = self._room[:2], self._room[2]
        self._first(h)
        smooth += projected[:2]
        if cell.hard is None:
            np.tanh(smooth, smooth)
            smooth *= _HALF
            smooth += _HALF
        else:
            cell.hard.apply(smooth)
        z, r = smooth
        if cell.reset_last:
            if cell.rb_h is not None:
                candidate += cell.rb_h
            candidate *= r
        else:
            self._last(np.multiply(r, h, r))
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
        bias = None if b is None else bias_by_gate(both_halves(b), (0,), 0)
        return cls(by_gate(w, (0,), 0), by_gate(r, (0,), 0)[0], bias, None)

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

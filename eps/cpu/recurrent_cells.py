"""RNN, GRU and LSTM with the operators' own activations, all directions in one step.

Sums that go into a sigmoid are halved beforehand, in weights and biases: sigmoid(x) is
tanh(x / 2) / 2 + 1/2, so that one tanh serves all gates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eps.cpu.arrays import Array


def halved(values: Array, gates: int, smooth: int) -> Array:
    """A copy of [D, gates * H, ...] whose first `smooth` gates are halved."""
    result = values.copy()
    result[:, : smooth * (values.shape[1] // gates)] *= 0.5
    return result


def turned(values: Array) -> Array:
    """[D, G, K] as [D, K, G], in memory too."""
    return np.ascontiguousarray(values.swapaxes(1, 2))


def by_gate(values: Array, gates: int) -> Array:
    """[..., D, K, gates * H] as [..., gates, D, K, H], in memory too.

    Then what a step does with one gate, or several, it does to one block of memory.
    """
    parts = values.reshape(*values.shape[:-1], gates, values.shape[-1] // gates)
    return np.ascontiguousarray(np.moveaxis(parts, -2, -4))


def project_all(x: Array, w: Array, bias: Array | None, gates: int = 1) -> Array:
    """x [T, B, I] times w [D, I, gates * n], plus bias [gates, D, 1, n]: [T, gates, D, B, n].

    The order changes in the pass that adds the bias: memory that is new costs more than both.
    """
    flat = np.matmul(x.reshape(-1, x.shape[2]), w)
    parts = flat.reshape(w.shape[0], *x.shape[:2], gates, -1).transpose(1, 3, 0, 2, 4)
    result = np.empty(parts.shape, flat.dtype)
    if bias is None:
        np.copyto(result, parts)
    else:
        np.add(parts, bias, out=result)
    return result


def smoothed(gates: Array) -> Array:
    """tanh of halved sums as sigmoid of whole ones, in place."""
    gates *= 0.5
    gates += 0.5
    return gates


def lstm_states(gates: Array, c: Array) -> tuple[Array, Array]:
    """New h and c [D, B, H] from the sums [4, D, B, H] of gates i, o, f, c, which are lost."""
    np.tanh(gates, out=gates)
    smoothed(gates[:3])
    i, o, f, candidate = gates
    new = f * c
    candidate *= i
    new += candidate
    result = np.tanh(new)
    result *= o
    return result, new


@dataclass(frozen=True, slots=True)
class PlainLstm:
    """LSTM without peepholes; weights [D, I, 4 * H] and [4, D, H, H]."""

    w: Array
    r: Array
    bias: Array | None

    @classmethod
    def of(cls, w: Array, r: Array, b: Array | None) -> PlainLstm:
        """From the node's inputs [D, 4 * H, I], [D, 4 * H, H] and [D, 8 * H]."""
        bias = None
        if b is not None:
            size = b.shape[1] // 2
            bias = by_gate(halved(b[:, :size] + b[:, size:], 4, 3)[:, None], 4)
        return cls(turned(halved(w, 4, 3)), by_gate(halved(r, 4, 3).swapaxes(1, 2), 4), bias)

    def project(self, x: Array) -> Array:
        """See StackedCell."""
        return project_all(x, self.w, self.bias, 4)

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        """See StackedCell."""
        gates = np.matmul(states[0], self.r)
        gates += projected
        return lstm_states(gates, states[1])


@dataclass(frozen=True, slots=True)
class PlainGru:
    """GRU; `rb_h` [D, 1, H] is the hidden gate's recurrent bias where reset comes last."""

    w: Array
    r_zr: Array
    r_h: Array
    bias: Array | None
    rb_h: Array | None
    reset_last: bool

    @classmethod
    def of(cls, w: Array, r: Array, b: Array | None, *, reset_last: bool) -> PlainGru:
        """From the node's inputs [D, 3 * H, I], [D, 3 * H, H] and [D, 6 * H]."""
        size = r.shape[2]
        bias = rb_h = None
        if b is not None:
            bias = b[:, : 3 * size] + b[:, 3 * size :]
            if reset_last:
                rb_h = b[:, None, 5 * size :]
                bias[:, 2 * size :] = b[:, 2 * size : 3 * size]
            bias = halved(bias, 3, 2)[:, None]
        rows = halved(r, 3, 2)
        return cls(
            turned(halved(w, 3, 2)),
            turned(rows[:, : 2 * size]),
            turned(rows[:, 2 * size :]),
            bias,
            rb_h,
            reset_last,
        )

    def project(self, x: Array) -> Array:
        """See StackedCell."""
        return project_all(x, self.w, self.bias)[:, 0]

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        """See StackedCell."""
        h = states[0]
        size = h.shape[2]
        gates = np.matmul(h, self.r_zr)
        gates += projected[..., : 2 * size]
        np.tanh(gates, out=gates)
        smoothed(gates)
        z, r = gates[..., :size], gates[..., size:]
        if self.reset_last:
            candidate = np.matmul(h, self.r_h)
            if self.rb_h is not None:
                candidate += self.rb_h
            candidate *= r
        else:
            candidate = np.matmul(r * h, self.r_h)
        candidate += projected[..., 2 * size :]
        np.tanh(candidate, out=candidate)
        result = h - candidate
        result *= z
        result += candidate
        return (result,)


@dataclass(frozen=True, slots=True)
class PlainRnn:
    """RNN with tanh."""

    w: Array
    r: Array
    bias: Array | None

    @classmethod
    def of(cls, w: Array, r: Array, b: Array | None) -> PlainRnn:
        """From the node's inputs [D, H, I], [D, H, H] and [D, 2 * H]."""
        size = r.shape[2]
        bias = None if b is None else (b[:, :size] + b[:, size:])[:, None]
        return cls(turned(w), turned(r), bias)

    def project(self, x: Array) -> Array:
        """See StackedCell."""
        return project_all(x, self.w, self.bias)[:, 0]

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        """See StackedCell."""
        sums = np.matmul(states[0], self.r)
        sums += projected
        return (np.tanh(sums, out=sums),)

"""RNN, GRU and LSTM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import computing_wide, widen_floats
from eps.cpu.products import matmul
from eps.cpu.recurrent import (
    Recurrence,
    activations_of,
    default_activations,
    hard_gates,
    part,
    walk,
)
from eps.cpu.recurrent_cells import PlainGru, PlainLstm, PlainRnn
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.cpu.arrays import Array
    from eps.cpu.recurrent import Activation, RecurrentCell, StackedCell
    from ort_lite.ep import KernelFn, KernelInfo


def project(x: Array, w: Array, bias: Array | None) -> Array:
    """x [T, B, I] times w [G, I] transposed, plus bias: one matrix product for all steps."""
    result = matmul(x, w.T)
    if bias is not None:
        result += bias
    return result


def _no_clip(x: Array) -> Array:
    return x


def _clipper(info: KernelInfo) -> Callable[[Array], Array]:
    """Make the function that clips the inputs of activations to [-clip, clip]."""
    bound = info.attr("clip")
    return _no_clip if not bound else lambda x: np.clip(x, -bound, bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """One direction's weights of the input and bias, and its first activation."""

    w: Array
    bias: Array | None
    clip: Callable[[Array], Array]
    f: Activation

    def project(self, x: Array) -> Array:
        return project(x, self.w, self.bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RnnCell(_Cell):
    r: Array

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        return (self.f(self.clip(projected + matmul(states[0], self.r.T))),)


def _rnn(info: KernelInfo) -> KernelFn:
    """ONNX RNN: h' = f(x W' + h R' + Wb + Rb)."""
    recurrence, clip = Recurrence.of(info), _clipper(info)
    functions = activations_of(info, ["Tanh"], len(recurrence.backwards))
    if default_activations(info, ["Tanh"]) and clip is _no_clip:
        return _stack_cells(info, recurrence, PlainRnn.of)

    def cell(weights: Sequence[Array | None], d: int) -> _RnnCell:
        w, r, b, _ = (part(values, d) for values in weights)
        hidden = r.shape[-1]
        bias = None if b is None else b[:hidden] + b[hidden:]
        return _RnnCell(w=w, r=r, bias=bias, clip=clip, f=functions[d])

    return _by_direction(info, recurrence, cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GruCell(_Cell):
    """Gates z, r and h; `rb_h` is the hidden gate's recurrent bias where reset comes last."""

    r_zr: Array
    r_h: Array
    rb_h: Array | None
    reset_last: bool
    g: Activation

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        h = states[0]
        size = h.shape[1]
        gates = self.f(self.clip(projected[:, : 2 * size] + matmul(h, self.r_zr.T)))
        z, r = gates[:, :size], gates[:, size:]
        if self.reset_last:
            recurrent = matmul(h, self.r_h.T)
            if self.rb_h is not None:
                recurrent += self.rb_h
            recurrent *= r
        else:
            recurrent = matmul(r * h, self.r_h.T)
        recurrent += projected[:, 2 * size :]
        candidate = self.g(self.clip(recurrent))
        return (candidate + z * (h - candidate),)


def _gru(info: KernelInfo) -> KernelFn:
    """ONNX GRU: h' = (1 - z) * g(...) + z * h; linear_before_reset says where r applies."""
    recurrence, clip = Recurrence.of(info), _clipper(info)
    functions = activations_of(info, ["Sigmoid", "Tanh"], len(recurrence.backwards))
    reset_last = bool(info.attr("linear_before_reset", 0))
    hard = hard_gates(info, ["Sigmoid", "Tanh"], len(recurrence.backwards))
    if (hard or default_activations(info, ["Sigmoid", "Tanh"])) and clip is _no_clip:
        plain = partial(PlainGru.of, reset_last=reset_last, hard=hard)
        return _stack_cells(info, recurrence, plain)

    def cell(weights: Sequence[Array | None], d: int) -> _GruCell:
        w, r, b, _ = (part(values, d) for values in weights)
        size = r.shape[-1]
        bias = rb_h = None
        if b is not None:
            bias = b[: 3 * size] + b[3 * size :]
            if reset_last:
                rb_h = b[5 * size :]
                bias[2 * size :] = b[2 * size : 3 * size]
        return _GruCell(
            w=w,
            r_zr=r[: 2 * size],
            r_h=r[2 * size :],
            bias=bias,
            rb_h=rb_h,
            reset_last=reset_last,
            clip=clip,
            f=functions[2 * d],
            g=functions[2 * d + 1],
        )

    return _by_direction(info, recurrence, cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LstmCell(_Cell):
    """Gates i, o, f and c, with peepholes `p` [3, H] for i, o and f."""

    r: Array
    p: Array | None
    coupled: bool
    g: Activation
    h: Activation

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        old, c = states
        i, o, f, new = np.split(projected + matmul(old, self.r.T), 4, axis=1)
        if self.p is not None:
            i, f = i + self.p[0] * c, f + self.p[2] * c
        i = self.f(self.clip(i))
        f = 1 - i if self.coupled else self.f(self.clip(f))
        c = f * c + i * self.g(self.clip(new))
        if self.p is not None:
            o = o + self.p[1] * c
        return self.f(self.clip(o)) * self.h(c), c


def _lstm(info: KernelInfo) -> KernelFn:
    """ONNX LSTM."""
    recurrence, clip = Recurrence.of(info), _clipper(info)
    defaults = ["Sigmoid", "Tanh", "Tanh"]
    functions = activations_of(info, defaults, len(recurrence.backwards))
    coupled = bool(info.attr("input_forget", 0))
    hard = hard_gates(info, defaults, len(recurrence.backwards))
    plain = (hard or default_activations(info, defaults)) and clip is _no_clip and not coupled
    if plain and not any(info.node.inputs[7:8]):
        return _stack_cells(info, recurrence, partial(PlainLstm.of, hard=hard))

    def cell(weights: Sequence[Array | None], d: int) -> _LstmCell:
        w, r, b, p = (part(values, d) for values in weights)
        size = r.shape[-1]
        f, g, h = functions[3 * d : 3 * d + 3]
        return _LstmCell(
            w=w,
            r=r,
            bias=None if b is None else b[: 4 * size] + b[4 * size :],
            p=None if p is None else p.reshape(3, size),
            coupled=coupled,
            clip=clip,
            f=f,
            g=g,
            h=h,
        )

    return _by_direction(info, recurrence, cell)


def _by_direction(
    info: KernelInfo,
    recurrence: Recurrence,
    cell: Callable[[Sequence[Array | None], int], RecurrentCell],
) -> KernelFn:
    """A node of any cells, made anew for each direction of each run from (W, R, B, P)."""

    def run(x: Array, w: Array, r: Array, *rest: Array | None) -> tuple[Array, ...]:
        optional: list[Array | None] = [*rest, *[None] * (5 - len(rest))]
        b, lengths, h, c, p = optional
        cells = [cell((w, r, b, p), d) for d in range(len(recurrence.backwards))]
        initial = [h, c] if info.op_type == "LSTM" else [h]
        return recurrence.run(cells, x, lengths, initial, r.shape[-1])

    return computing_wide(info, run)


def _stack_cells(
    info: KernelInfo, recurrence: Recurrence, cell: Callable[..., StackedCell]
) -> KernelFn:
    """A node of plain cells, made once where weights and bias are constants."""
    present = [i for i in (1, 2, 3) if i < info.n_inputs and info.node.inputs[i]]
    prepared = None
    if all(info.constant(i) is not None for i in present):
        prepared = cell(*(widen_floats(info.constant(i)) for i in (1, 2, 3)))

    def run(x: Array, w: Array, r: Array, *rest: Array | None) -> tuple[Array, ...]:
        optional: list[Array | None] = [*rest, *[None] * (5 - len(rest))]
        b, lengths, *initial = optional[:4] if info.op_type == "LSTM" else optional[:3]
        made = prepared or cell(w, r, b)
        return walk(recurrence, made, x, lengths, initial, r.shape[-1])

    return computing_wide(info, run)


KERNELS: tuple[KernelDef, ...] = (
    kernel("RNN", since=(1, 22))(_rnn),
    kernel("GRU", since=(1, 22))(_gru),
    kernel("LSTM", since=(1, 22))(_lstm),
)

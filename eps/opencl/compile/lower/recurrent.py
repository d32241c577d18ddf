"""LSTM, GRU and RNN: one product with the whole input, then a kernel that steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.codegen.recurrent import ACTIVATIONS
from eps.opencl.compile.ir import IrTensor, Recurrence, Unsupported
from eps.opencl.compile.lower.dense import product, transpose
from eps.opencl.compile.lower.node import NodeView, call, constant
from eps.opencl.compile.lower.shape import slice_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Array = np.ndarray[Any, np.dtype[Any]]

MAX_HIDDEN = 2048
"""Units of a state that a work-item keeps to itself."""
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


def _recurrent(kind: str) -> Callable[[NodeView], list[IrTensor]]:
    def lower(node: NodeView) -> list[IrTensor]:
        node.require_float32(0, 1, 2)
        x = node.input(0)
        by_batch = bool(node.attr("layout", 0))
        if by_batch:
            x = transpose(node, x, (1, 0, 2))
        w = node.constant(1, "the weights of the input")
        r = node.constant(2, "the weights of the recurrence")
        _check(node, kind, r)
        directions, rows, _ = w.shape
        bias = np.zeros((directions, 2 * rows), np.float32)
        if node.has(3):
            bias = node.constant(3, "the bias")
        inside = kind == "GRU" and bool(node.attr("linear_before_reset", 0))
        projected = product(node, x, constant(w.transpose(2, 0, 1).reshape(w.shape[2], -1)))
        outside = _outer_bias(bias, rows, r.shape[2], inside=inside)
        projected = node.pointwise(
            lambda a, b: call("add", a, b), [projected, constant(outside.reshape(-1))]
        )
        output = _emit(node, kind, projected, r, bias[:, rows:] if inside else None)
        return give_states(node, kind, output, by_batch=by_batch)

    return lower


def _check(node: NodeView, kind: str, r: Array) -> None:
    if r.shape[2] > MAX_HIDDEN:
        raise Unsupported(f"a state of {r.shape[2]}")
    if node.attr("clip") is not None or node.attr("input_forget", 0):
        raise Unsupported(f"{kind} with clip or input_forget")
    if node.has(7) and kind == "LSTM":
        node.constant(7, "the peepholes")


def _outer_bias(bias: Array, rows: int, hidden: int, *, inside: bool) -> Array:
    """Both biases added; that of GRU's last gate stays apart where the reset is outside."""
    outer, recurrent = bias[:, :rows].copy(), bias[:, rows:].copy()
    if inside:
        recurrent[:, 2 * hidden :] = 0
    return np.asarray(outer + recurrent, np.float32)


def read_activations(node: NodeView, kind: str, directions: int) -> tuple[str, ...]:
    """The activations' names, the same for each direction."""
    count = len(_DEFAULTS[kind])
    names = [str(a) for a in node.attr("activations") or _DEFAULTS[kind] * directions]
    each = {tuple(names[i : i + count]) for i in range(0, len(names), count)}
    if len(each) != 1 or not all(a in ACTIVATIONS for a in names):
        raise Unsupported(f"activations {names}")
    for attribute, usual in (("activation_alpha", 0.2), ("activation_beta", 0.5)):
        values = node.attr(attribute) or []
        if values and ("HardSigmoid" not in names or {*values} != {float(np.float32(usual))}):
            raise Unsupported("activations with parameters")
    return each.pop()


def read_directions(node: NodeView, directions: int) -> tuple[bool, ...]:
    """For each direction, whether it runs from the end."""
    direction = node.attr("direction", "forward")
    known = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if direction not in known or len(known[direction]) != directions:
        raise Unsupported(f"direction {direction} with {directions} sets of weights")
    return known[direction]


def _emit(
    node: NodeView, kind: str, projected: IrTensor, r: Array, hidden_bias: Array | None
) -> IrTensor:
    steps, batch = projected.shape[:2]
    directions, rows, hidden = r.shape
    if rows != _GATES[kind] * hidden:
        raise Unsupported(f"weights of shape {list(r.shape)}")
    inputs = [projected, constant(r)]
    places: dict[str, int] = {}

    def add(name: str, tensor: IrTensor) -> None:
        places[name] = len(inputs)
        inputs.append(tensor)

    if node.has(4):
        if node.input(4).dtype != "int32":
            raise Unsupported(f"lengths of {node.input(4).dtype}")
        add("lengths", node.input(4))
    states = {"initial_h": 5, "initial_c": 6} if kind == "LSTM" else {"initial_h": 5}
    for name, position in states.items():
        if node.has(position):
            node.require_float32(position)
            state = node.input(position)
            if node.attr("layout", 0):
                state = transpose(node, state, (1, 0, 2))
            add(name, state)
    if kind == "LSTM" and node.has(7):
        add("peepholes", node.input(7))
    if hidden_bias is not None:
        add("hidden_bias", constant(np.ascontiguousarray(hidden_bias[:, 2 * hidden :])))
    states_out = 2 if kind == "LSTM" else 1
    output = IrTensor((steps + states_out, directions, batch, hidden), "float32")
    node.emit(
        Recurrence(
            tuple(inputs),
            output,
            kind=kind,
            reverse=read_directions(node, directions),
            activations=read_activations(node, kind, directions),
            linear_before_reset=hidden_bias is not None,
            **places,
        )
    )
    return output


def give_states(node: NodeView, kind: str, output: IrTensor, *, by_batch: bool) -> list[IrTensor]:
    """Y [T, D, B, H], Y_h and Y_c [D, B, H]; batch first with `layout` 1."""
    total, *rest = output.shape
    steps = total - (2 if kind == "LSTM" else 1)
    every = [slice(None)] * 3
    results = [slice_tensor(node, output, [slice(0, steps), *every])]
    for at in range(steps, total):
        state = slice_tensor(node, output, [slice(at, at + 1), *every])
        results.append(node.reshape(state, rest))
    if by_batch:
        results = [transpose(node, results[0], (2, 0, 1, 3)), *results[1:]]
        results[1:] = [transpose(node, s, (1, 0, 2)) for s in results[1:]]
    return results


LOWERINGS: Mapping[str, Callable[[NodeView], list[IrTensor]]] = {
    kind: _recurrent(kind) for kind in _GATES
}

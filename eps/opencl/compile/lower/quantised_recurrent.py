"""com.microsoft DynamicQuantizeLSTM-1: 8-bit weights, inputs and states quantised on the fly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.ir import EIGHT_BITS, IrTensor, QuantisedLstm, Unsupported
from eps.opencl.compile.lower.integer import integer_product
from eps.opencl.compile.lower.node import NodeView, call, constant
from eps.opencl.compile.lower.quantised import dynamic_steps
from eps.opencl.compile.lower.recurrent import (
    MAX_HIDDEN,
    give_states,
    read_activations,
    read_directions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.expression import Expr

    Array = np.ndarray[Any, np.dtype[Any]]

GATES = 4


def _lstm(node: NodeView) -> list[IrTensor]:
    """The products with all inputs, whose range is that of the whole tensor; then the steps."""
    node.require_float32(0)
    x = node.input(0)
    w, w_scale = _read_weights(node, 1, 8)
    r, r_scale = _read_weights(node, 2, 10)
    directions, hidden, columns = r.shape
    if columns != GATES * hidden or w.shape[0] != directions or w.shape[2] != columns:
        raise Unsupported(f"weights of shapes {list(w.shape)} and {list(r.shape)}")
    _check(node, hidden)
    projected = _project(node, x, w, w_scale)
    steps, batch = x.shape[:2]
    inputs = [projected, constant(np.ascontiguousarray(r.transpose(0, 2, 1)))]
    places = []
    for position in (5, 6):
        places.append(len(inputs) if node.has(position) else 0)
        if node.has(position):
            node.require_float32(position)
            inputs.append(node.input(position))
    output = IrTensor((steps + 2, directions, batch, hidden), "float32")
    node.emit(
        QuantisedLstm(
            tuple(inputs),
            output,
            kind="LSTM",
            reverse=read_directions(node, directions),
            activations=read_activations(node, "LSTM", directions),
            scales=r_scale,
            initial_h=places[0],
            initial_c=places[1],
        )
    )
    return give_states(node, "LSTM", output, by_batch=False)


def _read_weights(node: NodeView, position: int, scale: int) -> tuple[Array, Array]:
    """Weights [D, K, 4 * H] less their zero points, as int16, and scales [D, 4 * H].

    Scales and zero points are for a direction, or for each of its columns.
    """
    weights = node.constant(position, "the weights of a quantised LSTM")
    if weights.dtype.name not in EIGHT_BITS:
        raise Unsupported(f"weights of {weights.dtype}")
    directions, _, columns = weights.shape
    what = "the scale of a weight"
    scales = node.constant(scale, what).astype(np.float32).reshape(directions, -1)
    whole = weights.astype(np.int16)
    if node.has(scale + 1):
        whole -= node.constant(scale + 1, what).astype(np.int16).reshape(directions, 1, -1)
    return whole, np.ascontiguousarray(np.broadcast_to(scales, (directions, columns)))


def _check(node: NodeView, hidden: int) -> None:
    if hidden > MAX_HIDDEN:
        raise Unsupported(f"a state of {hidden}")
    if node.attr("clip", 0) or node.attr("input_forget", 0):
        raise Unsupported("a quantised LSTM with clip or input_forget")
    if node.has(4) or node.has(7):
        raise Unsupported("a quantised LSTM with lengths or peepholes")


def _project(node: NodeView, x: IrTensor, w: Array, scales: Array) -> IrTensor:
    """x [T, B, I] times the weights of all directions, plus both biases: [T, B, D * 4 * H]."""
    _, depth, columns = w.shape
    if x.shape[2] != depth:
        raise Unsupported(f"inputs of {x.shape[2]} and weights for {depth}")
    steps, scale, zero = dynamic_steps(node, x)
    flat = constant(np.ascontiguousarray(w.transpose(1, 0, 2)).reshape(depth, -1))
    total = integer_product(node, steps, zero, flat, None)
    operands = [total, scale, constant(scales.reshape(-1))]
    if node.has(3):
        bias = node.constant(3, "the bias")
        both = bias[:, :columns] + bias[:, columns:]
        operands.append(constant(np.asarray(both, np.float32).reshape(-1)))

    def write(sum_: Expr, step: Expr, weight: Expr, *bias: Expr) -> Expr:
        value = call("cast", sum_, dtype="float32")
        value = call("mul", value, call("mul", step, weight))
        return call("add", value, bias[0]) if bias else value

    return node.pointwise(write, operands, "float32")


CONTRIB: Mapping[str, Callable[[NodeView], list[IrTensor]]] = {"DynamicQuantizeLSTM": _lstm}

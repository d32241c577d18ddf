"""Random steps on quantised values: QLinear operators, sums of integers, dynamic quantisation."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from parity.quantised_graphs.float_steps import FEW, finish
from parity.quantised_graphs.graph import (
    CONTRIB,
    LARGEST,
    LARGEST_MULTIPLE,
    Exact,
    Quantised,
    QuantisedGraph,
    on_floats,
    on_integers,
)
from parity.quantised_graphs.weights import IntegerWeights, integer_weights


def operand(graph: QuantisedGraph, value: Quantised) -> list[str]:
    """A value with scale and zero point, which onnxruntime's QLinear operators want as scalars."""
    scale, zero = np.float32(value.scale), np.array(value.zero)
    return [value.name, graph.constant(scale), graph.constant(zero, value.dtype)]


def linear(
    graph: QuantisedGraph, op_type: str, inputs: list[str], *, value: Quantised, typical: float,
    shape: tuple[int, ...], domain: str = CONTRIB, after: bool = True, late: tuple[str, ...] = (),
    **attributes: Any,
) -> Quantised | None:  # fmt: skip
    """Add an operator whose result has a scale and zero point, read behind other inputs.

    Args:
        graph: Which gets it.
        op_type: Its name.
        inputs: Before the parameters of the result.
        value: Whose type the result has.
        typical: Usual size of the result.
        shape: The result's.
        domain: The operator's.
        after: Whether parameters come behind the inputs, not before.
        late: Inputs behind the parameters.
        attributes: The operator's.
    """
    if not 0 < prod(shape) <= LARGEST:
        return None
    scale, zero, *names = graph.parameters(typical, value.dtype)
    ordered = [*inputs, *names, *late] if after else [*names, *inputs]
    if domain:
        attributes["domain"] = domain
    name = graph.node(op_type, *ordered, **attributes)
    return graph.keep(Quantised(name, shape, value.dtype, scale, zero, names[0], names[1], typical))


@on_integers(5)
def dequantise(graph: QuantisedGraph, value: Quantised) -> None:
    graph.dequantise(value)


@on_integers()
def requantise(graph: QuantisedGraph, value: Quantised) -> None:
    graph.quantise(graph.dequantise(value))


@on_integers(3)
def elementwise(graph: QuantisedGraph, value: Quantised) -> None:
    """QLinearAdd or QLinearMul of two values, or of a value and constants."""
    if not value.is_byte:
        return
    other = graph.same_shape(value, Quantised)
    if other.dtype != value.dtype:
        other = value
    if graph.chance(0.3):
        shape = graph.pick((), value.shape[1:2] + (1,) * (value.rank - 2), value.shape[-1:])
        low, high = (0, 255) if value.dtype == "uint8" else (-128, 127)
        numbers = graph.constant(graph.random.integers(low, high + 1, shape), value.dtype)
        other = replace(value, name=numbers)
    op_type = graph.pick("QLinearAdd", "QLinearMul")
    typical = float(np.hypot(value.typical, other.typical))
    if op_type == "QLinearMul":
        typical = value.typical * other.typical
    linear(graph, op_type, operand(graph, value) + operand(graph, other), value=value,
           typical=typical, shape=value.shape)  # fmt: skip


@on_integers(2)
def concatenation(graph: QuantisedGraph, value: Quantised) -> None:
    """QLinearConcat of values with steps of their own."""
    axis = graph.integer(0, value.rank - 1)
    around = value.shape[:axis] + value.shape[axis + 1 :]
    others = [
        v for v in graph.pool
        if isinstance(v, Quantised) and v.dtype == value.dtype and v.rank == value.rank
        and v.shape[:axis] + v.shape[axis + 1 :] == around
    ]  # fmt: skip
    if not value.is_byte:
        return
    other = graph.pick(*others)
    size = value.shape[axis] + other.shape[axis]
    linear(graph, "QLinearConcat", operand(graph, value) + operand(graph, other), value=value,
           typical=max(value.typical, other.typical), after=False, axis=axis,
           shape=(*value.shape[:axis], size, *value.shape[axis + 1 :]))  # fmt: skip


@on_integers(2)
def activation(graph: QuantisedGraph, value: Quantised) -> None:
    if not value.is_byte:
        return
    op_type = graph.pick("LeakyRelu", "Sigmoid", "Softmax")
    inputs = operand(graph, value)
    if op_type == "LeakyRelu":
        linear(graph, "QLinearLeakyRelu", inputs, value=value, typical=value.typical,
               shape=value.shape, alpha=0.25)  # fmt: skip
        return
    if value.size > FEW:
        return
    more = {"axis": -1, "opset": graph.opset} if op_type == "Softmax" else {}
    made = linear(graph, f"QLinear{op_type}", inputs, value=value, typical=0.3, shape=value.shape,
                  **more)  # fmt: skip
    if made:
        floats = graph.side("DequantizeLinear", *inputs)
        along = {"axis": -1} if more else {}
        graph.round_result(graph.side(op_type, floats, **along), made.scale)


@on_integers(2)
def windows(graph: QuantisedGraph, value: Quantised) -> None:
    """QLinearAveragePool of 2 x 2, or QLinearGlobalAveragePool of a power of two."""
    if value.rank != 4 or not value.is_byte:
        return
    batch, channels, *sides = value.shape
    inputs = operand(graph, value)
    if graph.chance(0.4):
        if prod(sides) & (prod(sides) - 1) == 0:
            linear(graph, "QLinearGlobalAveragePool", inputs, value=value,
                   typical=value.typical / 2, shape=(batch, channels, 1, 1))  # fmt: skip
        return
    stride = graph.pick(1, 2)
    pads = graph.pick([0, 0, 0, 0], [1, 1, 1, 1])
    shape = (batch, channels, *((d + pads[0] + pads[2] - 2) // stride + 1 for d in sides))
    linear(graph, "QLinearAveragePool", inputs, value=value, typical=value.typical / 2,
           shape=shape, kernel_shape=[2, 2], pads=pads, strides=[stride, stride])  # fmt: skip


def weights_for(
    graph: QuantisedGraph, value: Quantised, shape: tuple[int, ...], axis: int
) -> IntegerWeights:
    """Of a type that goes with the value's."""
    dtype = "int8" if value.dtype == "int8" else graph.pick("int8", "uint8")
    return integer_weights(
        graph, shape, axis, dtype, by_axis=graph.chance(0.5), shared_zero=len(shape) > 2
    )


def fits(value: Quantised, weights: IntegerWeights, depth: int) -> bool:
    """Whether float32 holds the sums of products."""
    step = value.scale * float(weights.scales.min())
    return value.largest * weights.largest * (depth + 1) / step < LARGEST_MULTIPLE


@on_integers(4)
def convolution(graph: QuantisedGraph, value: Quantised) -> None:
    """QLinearConv, or ConvInteger with what makes floats of its sums."""
    if value.rank not in (3, 4) or not value.is_byte or value.shape[1] > 32:
        return
    channels, sides = value.shape[1], value.shape[2:]
    group = graph.pick(1, 1, channels, 2 if channels % 2 == 0 else 1)
    outputs = group * graph.integer(1, 12 if group == 1 else 2)
    kernel = [graph.integer(1, min(3, side)) for side in sides]
    pads = [graph.integer(0, 1) for _ in range(2 * len(sides))]
    strides = [graph.integer(1, 2) for _ in sides]
    extents = [
        (side + pads[i] + pads[i + len(sides)] - kernel[i]) // strides[i] + 1
        for i, side in enumerate(sides)
    ]
    depth = channels // group * prod(kernel)
    weights = weights_for(graph, value, (outputs, channels // group, *kernel), 0)
    if not fits(value, weights, depth):
        return
    shape = (value.shape[0], outputs, *extents)
    where = {"group": group, "pads": pads, "strides": strides}
    if graph.chance(0.7):
        inputs = [*operand(graph, value), weights.name, weights.scale_name, weights.zero_name]
        late: tuple[str, ...] = ()
        if graph.chance(0.5):
            late = (graph.constant(graph.random.integers(-300, 301, outputs), "int32"),)
        linear(graph, "QLinearConv", inputs, value=value, shape=shape, domain="", late=late,
               typical=value.typical * float(np.sqrt(depth)), **where)  # fmt: skip
    elif value.dtype == "uint8" and not weights.scales.ndim:
        zeros = [graph.zero_of(value), weights.zero_name]
        sums = graph.node("ConvInteger", value, weights.name, *zeros, **where)
        finish(graph, scaled(graph, sums, value, weights, depth, shape))


def scaled(
    graph: QuantisedGraph, sums: str, value: Quantised, weights: IntegerWeights, depth: int,
    shape: tuple[int, ...],
) -> Exact | None:  # fmt: skip
    """Sums of integers as floats, by the product of both scales."""
    floats = graph.node("Cast", sums, to=1)
    if graph.chance(0.5):
        factor = graph.node("Mul", value.scale_name, weights.scale_name)
    else:
        factor = graph.constant(np.float32(value.scale) * weights.scales)
    step = value.scale * float(weights.scales.min())
    return graph.exact(
        "Mul", floats, factor, like=Exact("", shape, step, value.largest * weights.largest * depth,
                                          value.typical * float(np.sqrt(depth))),
    )  # fmt: skip


@on_integers(5)
def product(graph: QuantisedGraph, value: Quantised) -> None:
    """QLinearMatMul, QGemm, MatMulInteger or MatMulIntegerToFloat by constant weights."""
    if value.rank < 2 or not value.is_byte:
        return
    depth, columns = value.shape[-1], graph.integer(1, 24)
    weights = weights_for(graph, value, (depth, columns), 1)
    if not fits(value, weights, depth):
        return
    shape, typical = (*value.shape[:-1], columns), value.typical * float(np.sqrt(depth))
    three = [weights.name, weights.scale_name, weights.zero_name]
    op_type = graph.pick("QLinearMatMul", "QGemm", "MatMulInteger", "MatMulIntegerToFloat")
    match op_type:
        case "QLinearMatMul":
            linear(graph, op_type, operand(graph, value) + three, value=value, domain="",
                   shape=shape, typical=typical)  # fmt: skip
        case "QGemm" if value.rank == 2:
            bias = ""
            if graph.chance(0.6):
                bias = graph.constant(graph.random.integers(-300, 301, columns), "int32")
            linear(graph, op_type, [*operand(graph, value), *three, bias], value=value, shape=shape,
                   typical=typical)  # fmt: skip
        case "MatMulIntegerToFloat":
            inputs = [
                value.name,
                three[0],
                value.scale_name,
                three[1],
                graph.zero_of(value),
                three[2],
            ]
            step = value.scale * float(weights.scales.min())
            largest = value.largest * weights.largest * (depth + 1)
            like = Exact("", shape, step, largest, typical)
            if graph.chance(0.5):
                inputs.append(graph.constant(graph.random.integers(-90, 91, columns) * step))
            finish(graph, graph.exact(op_type, *inputs, like=like, domain=CONTRIB))
        case "MatMulInteger":
            if not weights.scales.ndim or value.dtype == "uint8":
                sums = graph.node(op_type, value, three[0], graph.zero_of(value), three[2])
                finish(graph, scaled(graph, sums, value, weights, depth, shape))


@on_floats(3)
def dynamic(graph: QuantisedGraph, value: Exact) -> None:
    """DynamicQuantizeLinear or DynamicQuantizeMatMul of what pads make range over 255 steps."""
    if value.rank < 2:
        return
    scale = 2.0 ** round(np.log2(max(5 * value.typical, value.step) / 255))
    if max(127 * scale, value.largest) / min(scale, value.step) > LARGEST_MULTIPLE:
        return
    low, high = graph.constant(-128 * scale), graph.constant(127 * scale)
    clipped = graph.node("Clip", value, low, high)
    before = graph.integers(*[0] * (value.rank - 1), 1, *[0] * value.rank)
    behind = graph.integers(*[0] * (2 * value.rank - 1), 1)
    padded = graph.node("Pad", graph.node("Pad", clipped, before, low), behind, high)
    shape = (*value.shape[:-1], value.shape[-1] + 2)
    whole = Quantised("", shape, "uint8", scale, 128, "", "", value.typical)
    if graph.chance(0.35):
        columns = graph.integer(1, 24)
        dtype = graph.pick("int8", "uint8")
        weights = integer_weights(graph, (shape[-1], columns), 1, dtype, by_axis=graph.chance(0.5))
        if fits(whole, weights, shape[-1]):
            step = scale * float(weights.scales.min())
            like = Exact("", (*shape[:-1], columns), step, whole.largest * weights.largest
                         * (shape[-1] + 1), value.typical * float(np.sqrt(shape[-1])))  # fmt: skip
            inputs = [padded, weights.name, weights.scale_name, weights.zero_name]
            if graph.chance(0.5):
                inputs.append(graph.constant(graph.random.integers(-90, 91, columns) * step))
            finish(graph, graph.exact("DynamicQuantizeMatMul", *inputs, like=like, domain=CONTRIB))
        return
    name, scale_name, zero_name = graph.node("DynamicQuantizeLinear", padded, outputs=3)
    made = graph.keep(replace(whole, name=name, scale_name=scale_name, zero_name=zero_name))
    graph.pick(product, convolution, dequantise, product)(graph, made)


@on_floats()
def dynamic_of_any_range(graph: QuantisedGraph, value: Exact) -> None:
    """DynamicQuantizeLinear whose three results are outputs, with sums of its integers."""
    names = graph.node("DynamicQuantizeLinear", value, outputs=3)
    graph.leaves += names
    if value.rank >= 2:
        weights = integer_weights(graph, (value.shape[-1], 5), 1, "int8", by_axis=False)
        graph.node("MatMulInteger", names[0], weights.name, names[2], weights.zero_name)

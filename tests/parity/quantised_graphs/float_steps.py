"""Random steps on exact float32 values between quantised ones."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
from parity.quantised_graphs.graph import (
    CONTRIB,
    LARGEST_MULTIPLE,
    WIDE_TYPES,
    Exact,
    QuantisedGraph,
    on_floats,
)
from parity.quantised_graphs.weights import dequantised_weights

if TYPE_CHECKING:
    from parity.random_graphs.graph import Value

FEW = 512
"""Elements of a result that rounds."""


@on_floats(8)
def quantise(graph: QuantisedGraph, value: Exact) -> None:
    """Behind a Clip, Relu or nothing; mostly dequantised at once, sometimes twice."""
    if graph.chance(0.3):
        value = activation(graph, value) or value
    result = graph.quantise(value)
    for _ in range(graph.pick(0, 1, 1, 1, 2)):
        graph.dequantise(result)


@on_floats()
def quantise_by_channel(graph: QuantisedGraph, value: Exact) -> None:
    """With a scale and zero point for each element of an axis, and back."""
    axis = graph.integer(0, value.rank - 1)
    if value.multiples > LARGEST_MULTIPLE / 8:
        return
    size, dtype = value.shape[axis], graph.pick("int8", "uint8")
    scales = (2.0 ** round(np.log2(6 * value.typical / 255))) * 2.0 ** graph.random.integers(
        -1, 2, size
    )
    zero = graph.zero_point(dtype)[0]
    zeros = np.clip(zero + graph.random.integers(-9, 10, size), -100, 100)
    if dtype == "uint8":
        zeros = np.abs(zeros)
    inputs = [graph.constant(scales), graph.constant(graph.zeros(zeros), dtype)]
    name = graph.node("QuantizeLinear", value, *inputs, axis=axis)
    graph.exact("DequantizeLinear", name, *inputs, like=value, axis=axis, step=float(scales.min()),
                largest=float(scales.max()) * 255)  # fmt: skip


@on_floats(2)
def activation(graph: QuantisedGraph, value: Exact) -> Exact | None:
    """One that is exact."""
    op_type = graph.pick("Relu", "Relu", "Clip", "LeakyRelu", "Neg", "Abs", "PRelu", "Max")
    match op_type:
        case "Clip":
            part = graph.pick(1, 1, 2)  # the bounds may be in the middle between two steps
            low, high = sorted(graph.integer(-18, 18) * value.step * 2 / part for _ in range(2))
            if graph.chance(0.3):
                low, high = 0.0, 2.0 ** round(np.log2(2 * value.typical))
            return graph.exact(op_type, value, graph.constant(low), graph.constant(high),
                               like=value, step=value.step / part)  # fmt: skip
        case "LeakyRelu":
            return graph.exact(op_type, value, like=value, alpha=0.25, step=value.step / 4)
        case "PRelu":
            slopes = graph.random.choice(
                [0.5, 0.25, -0.5, 0], value.shape[1:2] + (1,) * (value.rank - 2)
            )
            return graph.exact(op_type, value, graph.constant(slopes), like=value,
                               step=value.step / 4)  # fmt: skip
        case "Max":
            return graph.exact(op_type, value, graph.constant(value.step), like=value)
    return graph.exact(op_type, value, like=value)


@on_floats(2)
def rounding_activation(graph: QuantisedGraph, value: Exact) -> None:
    """One that engines may compute to other last bits; quantised at once."""
    if value.size > FEW:
        return
    op_type = graph.pick("Sigmoid", "Tanh", "Softmax", "HardSwish", "HardSigmoid", "Erf", "Elu",
                         "ReduceMean", "Div")  # fmt: skip
    if op_type == "HardSwish" and graph.opset < 14:
        return
    inputs, typical = [], {"HardSwish": value.typical, "Elu": value.typical}.get(op_type, 0.4)
    attributes = {}
    if op_type == "Softmax":
        attributes = {"axis": -1}
    if op_type == "Div":
        inputs, typical = [graph.constant(3.0)], value.typical / 3
    shape = value.shape
    if op_type == "ReduceMean":
        shape, typical = (*value.shape[:-1], 1), value.typical / 2
        if graph.opset >= 18:
            inputs = [graph.integers(-1)]
        else:
            attributes = {"axes": [-1]}
    name = graph.node(op_type, value, *inputs, **attributes)
    result = Exact(name, shape, 2.0**-30, 2.0**-7, typical)  # which no other step reads
    after = graph.quantise(result, graph.pick("uint8", "int8"))
    graph.round_result(name, after.scale)
    graph.dequantise(after)


@on_floats()
def extreme(graph: QuantisedGraph, value: Exact) -> None:
    """The largest or smallest along some axes; half the time quantised, behind an activation."""
    op_type = graph.pick("ReduceMax", "ReduceMin", "GlobalMaxPool")
    axes = sorted(graph.pick((-1,), (1,), (1, 2), tuple(range(2, value.rank))))
    attributes, inputs = {}, []
    if op_type == "GlobalMaxPool":
        axes = list(range(2, value.rank))
    elif graph.opset >= 18:
        inputs = [graph.integers(*axes)]
    else:
        attributes = {"axes": axes}
    if not axes or max(axes) >= value.rank or (op_type == "GlobalMaxPool" and value.rank < 3):
        return
    gone = {axis % value.rank for axis in axes}
    shape = [1 if axis in gone else size for axis, size in enumerate(value.shape)]
    made = graph.exact(op_type, value, *inputs, like=value, shape=shape, **attributes)
    if made is not None and graph.chance(0.5):
        quantise(graph, made)


@on_floats(3)
def binary(graph: QuantisedGraph, value: Exact) -> None:
    """With another value, or constants for each channel, for all or by the last axis."""
    op_type = graph.pick("Add", "Add", "Sub", "Mul")
    other: Exact | None = None
    if graph.chance(0.6):
        other = graph.same_shape(value, Exact)
    else:
        shape = graph.pick((), value.shape[1:2] + (1,) * (value.rank - 2), value.shape[-1:])
        step = value.step if op_type != "Mul" else 0.5
        numbers = graph.random.integers(-5, 6, shape) * step * (1 if op_type == "Mul" else 4)
        other = Exact(graph.constant(numbers), value.shape, step, 20 * step,
                      2 * step)  # fmt: skip
    assert other is not None
    pair = [value, other] if graph.chance(0.7) else [other, value]
    if op_type == "Mul":
        step = value.step * other.step
        graph.exact(op_type, *pair, like=value, step=step, largest=value.largest * other.largest,
                    typical=max(value.typical * other.typical, step))  # fmt: skip
    else:
        graph.exact(op_type, *pair, like=value, step=min(value.step, other.step),
                    largest=value.largest + other.largest,
                    typical=float(np.hypot(value.typical, other.typical)))  # fmt: skip


def summed(
    graph: QuantisedGraph, op_type: str, value: Exact, other: Exact, depth: int,
    shape: tuple[int, ...], inputs: list[str | Value], **attributes: object,
) -> Exact | None:  # fmt: skip
    """A node that sums products of two values."""
    return graph.exact(
        op_type, *inputs, like=value, shape=shape, step=value.step * other.step,
        largest=value.largest * other.largest * depth + 2 * value.largest * other.largest,
        typical=value.typical * other.typical * float(np.sqrt(depth)), **attributes,
    )  # fmt: skip


def bias_of(graph: QuantisedGraph, size: int, value: Exact, weights: Exact) -> str:
    """float32 constants, or int32 that are dequantised."""
    step = value.step * weights.step
    numbers = graph.random.integers(-200, 201, size)
    if graph.chance(0.5):
        return graph.constant(numbers * step)
    inputs = [graph.constant(numbers, "int32"), graph.constant(np.float32(step))]
    if graph.chance(0.3):
        inputs.append(graph.constant(0, "int32"))
    name: str = graph.node("DequantizeLinear", *inputs)
    return name


@on_floats(6)
def convolution(graph: QuantisedGraph, value: Exact) -> None:
    """Grouped, by channel or full, by dequantised weights; often with what follows in models."""
    if value.rank not in (3, 4) or value.shape[1] > 32:
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
    weights = dequantised_weights(graph, (outputs, channels // group, *kernel), 0)
    inputs: list[str | Value] = [value, weights]
    if graph.chance(0.6):
        inputs.append(bias_of(graph, outputs, value, weights))
    made = summed(graph, "Conv", value, weights, depth, (value.shape[0], outputs, *extents),
                  inputs, group=group, pads=pads, strides=strides)  # fmt: skip
    finish(graph, made)


@on_floats()
def transposed_convolution(graph: QuantisedGraph, value: Exact) -> None:
    if value.rank != 4 or value.shape[1] > 16:
        return
    outputs, stride = graph.integer(1, 6), graph.pick(1, 2)
    kernel = [graph.integer(1, 3) for _ in range(2)]
    weights = dequantised_weights(graph, (value.shape[1], outputs, *kernel), 1)
    extents = [(d - 1) * stride + k for d, k in zip(value.shape[2:], kernel, strict=True)]
    made = summed(graph, "ConvTranspose", value, weights, value.shape[1] * prod(kernel),
                  (value.shape[0], outputs, *extents), [value, weights],
                  strides=[stride, stride])  # fmt: skip
    finish(graph, made)


@on_floats(5)
def product(graph: QuantisedGraph, value: Exact) -> None:
    """MatMul or Gemm by dequantised weights."""
    depth, columns = value.shape[-1], graph.integer(1, 24)
    if value.rank < 2:
        return
    weights = dequantised_weights(graph, (depth, columns), 1)
    shape = (*value.shape[:-1], columns)
    if value.rank == 2 and graph.chance(0.5):
        inputs = [value, weights, bias_of(graph, columns, value, weights)]
        made = summed(graph, "Gemm", value, weights, depth, shape, inputs)
    else:
        made = summed(graph, "MatMul", value, weights, depth, shape, [value, weights])
        if made and graph.chance(0.5):
            added = bias_of(graph, columns, value, weights)
            made = graph.exact("Add", made, added, like=made)
    finish(graph, made)


@on_floats()
def product_of_values(graph: QuantisedGraph, value: Exact) -> None:
    """With its own transpose, as attention has it."""
    if value.rank < 2:
        return
    order = [*range(value.rank - 2), value.rank - 1, value.rank - 2]
    turned_shape = (*value.shape[:-2], value.shape[-1], value.shape[-2])
    turned = graph.exact("Transpose", value, like=value, shape=turned_shape, perm=order)
    if turned:
        shape = (*value.shape[:-1], value.shape[-2])
        finish(
            graph, summed(graph, "MatMul", value, turned, value.shape[-1], shape, [value, turned])
        )


def finish(graph: QuantisedGraph, made: Exact | None) -> None:
    """An activation or none, then mostly quantised and back."""
    if made is None:
        return
    if graph.chance(0.4):
        made = activation(graph, made) or made
    if graph.chance(0.75):
        graph.dequantise(graph.quantise(made))


@on_floats(2)
def few_bits(graph: QuantisedGraph, value: Exact) -> None:
    """MatMulNBits by weights of 4 bits."""
    if value.rank < 2:
        return
    depth, columns, block = value.shape[-1], graph.pick(1, 5, 16, 17), graph.pick(16, 32)
    blocks = -(-depth // block)
    stored = graph.random.integers(0, 256, (columns, blocks, block // 2))
    scales = 2.0 ** graph.random.integers(-4, -2, columns * blocks)
    inputs = [value, graph.constant(stored, "uint8"), graph.constant(scales)]
    if graph.chance(0.5):
        zeros = graph.random.integers(0, 256, columns * -(-blocks // 2))
        inputs.append(graph.constant(zeros, "uint8"))
    weights = Exact("", (), 2.0**-4, 16 * 2.0**-3, 0.5)
    made = summed(graph, "MatMulNBits", value, weights, depth, (*value.shape[:-1], columns),
                  inputs, domain=CONTRIB, K=depth, N=columns, bits=4, block_size=block)  # fmt: skip
    finish(graph, made)


@on_floats()
def blocks(graph: QuantisedGraph, value: Exact) -> None:
    """Quantised in blocks of the last axis, and back."""
    if graph.opset < WIDE_TYPES or value.multiples > LARGEST_MULTIPLE / 8:
        return
    axis = graph.integer(0, value.rank - 1)
    block = graph.pick(*(d for d in (1, 2, 4) if value.shape[axis] % d == 0))
    shape = tuple(d // block if i == axis else d for i, d in enumerate(value.shape))
    scales = (2.0 ** round(np.log2(6 * value.typical / 255))) * 2.0 ** graph.random.integers(
        -1, 2, shape
    )
    inputs = [
        graph.constant(scales),
        graph.constant(graph.zeros(graph.random.integers(-9, 10, shape)), "int8"),
    ]
    name = graph.node("QuantizeLinear", value, *inputs, axis=axis, block_size=block)
    graph.exact("DequantizeLinear", name, *inputs, like=value, axis=axis, block_size=block,
                step=float(scales.min()), largest=float(scales.max()) * 140)  # fmt: skip


@on_floats(2)
def windows(graph: QuantisedGraph, value: Exact) -> None:
    """Pools and means over a power of two of elements, which are exact."""
    if value.rank != 4:
        return
    batch, channels, *sides = value.shape
    if graph.chance(0.3):
        if prod(sides) & (prod(sides) - 1) == 0:
            graph.exact("GlobalAveragePool", value, like=value, shape=(batch, channels, 1, 1),
                        step=value.step / prod(sides), typical=value.typical / 2)  # fmt: skip
        return
    stride = graph.pick(1, 2)
    pads = graph.pick([0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1])
    shape = (batch, channels, *((d + pads[0] + pads[2] - 2) // stride + 1 for d in sides))
    op_type = graph.pick("AveragePool", "MaxPool")
    more = {"count_include_pad": 1} if op_type == "AveragePool" and graph.chance(0.4) else {}
    graph.exact(op_type, value, like=value, shape=shape, kernel_shape=[2, 2], pads=pads,
                strides=[stride, stride], step=value.step / 4, **more)  # fmt: skip

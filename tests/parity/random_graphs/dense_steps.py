"""Random steps that compute: elementwise, products, windows, reductions, quantisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto
from parity.random_graphs.graph import LARGEST, RandomGraph, Value, step

if TYPE_CHECKING:
    from collections.abc import Sequence

UNARY = (
    "Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Erf", "Softplus", "HardSigmoid", "Elu", "LeakyRelu",
    "Sin", "Cos", "Floor", "Round", "Sign", "Gelu", "HardSwish", "Mish", "Selu", "Softsign", "Ceil",
    "Atan", "Exp", "Sqrt", "Log", "Reciprocal",
)  # fmt: skip
ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Gelu")


@step(ranks=range(6), weight=2)
def unary(graph: RandomGraph, value: Value) -> Value:
    """Exp, Sqrt, Log and Reciprocal of arguments where they are defined and small."""
    op_type = graph.pick(*UNARY)
    if op_type == "Exp":
        bounds = graph.constant(-5), graph.constant(5)
        value = graph.add("Clip", value, *bounds, shape=value.shape)
    if op_type in ("Sqrt", "Log", "Reciprocal"):
        value = positive(graph, value)
    return graph.add(op_type, value, shape=value.shape)


@step(ranks=range(6), weight=3)
def binary(graph: RandomGraph, value: Value) -> Value:
    op_type = graph.pick("Add", "Sub", "Mul", "Max", "Min", "Div", "PRelu", "Mean", "Sum")
    other = graph.like(value.shape) if graph.chance(0.6) and op_type != "PRelu" else None
    if other is None:
        shape = [d if graph.chance(0.6) else 1 for d in value.shape]
        shape = shape[graph.integer(0, value.rank) :]
        other = Value(graph.constant(graph.floats(*shape)), tuple(shape))
    if op_type == "Div":
        other = positive(graph, other)
    if op_type in ("PRelu", "Div") or graph.chance(0.5):
        return graph.add(op_type, value, other, shape=value.shape)
    return graph.add(op_type, other, value, shape=value.shape)


@step(ranks=range(6))
def power(graph: RandomGraph, value: Value) -> Value:
    return graph.add("Pow", value, graph.constant(graph.pick(0, 1, 2, 3)), shape=value.shape)


@step()
def where(graph: RandomGraph, value: Value) -> Value:
    op_type = graph.pick("Greater", "Less", "GreaterOrEqual")
    condition = graph.node(op_type, value, graph.constant(graph.floats()))
    other = graph.like(value.shape) if graph.chance(0.5) else None
    return graph.add("Where", condition, value, other or graph.constant(-1), shape=value.shape)


@step(ranks=range(2, 6), weight=2)
def product_with_weights(graph: RandomGraph, value: Value) -> Value:
    rows, columns = value.shape[-1], graph.integer(1, 32)
    weights = graph.constant(graph.floats(rows, columns) / np.sqrt(rows))
    shape = (*value.shape[:-1], columns)
    made = graph.add("MatMul", value, weights, shape=shape)
    if graph.chance(0.6):
        made = graph.add("Add", made, graph.constant(graph.floats(columns)), shape=shape)
    if graph.chance(0.4):
        made = graph.add(graph.pick(*ACTIVATIONS), made, shape=shape)
    return made


@step(ranks=range(2, 6))
def product_of_values(graph: RandomGraph, value: Value) -> Value | None:
    """With a value that fits, or with its own transpose."""
    rank, (rows, columns) = value.rank, value.shape[-2:]
    fits = [
        each
        for each in graph.values
        if each.rank == rank and each.shape[:-1] == (*value.shape[:-2], columns)
    ]
    if fits:
        other = graph.pick(*fits)
    else:
        order = [*range(rank - 2), rank - 1, rank - 2]
        shape = (*value.shape[:-2], columns, rows)
        other = graph.add("Transpose", value, shape=shape, perm=order)
    shape = (*value.shape[:-1], other.shape[-1])
    if np.prod(shape) > LARGEST:
        return None
    made = graph.add("MatMul", value, other, shape=shape)
    return graph.add("Mul", made, graph.constant(1 / columns), shape=shape)


@step(ranks=[2])
def gemm(graph: RandomGraph, value: Value) -> Value:
    (rows, depth), columns = value.shape, graph.integer(1, 20)
    trans_b = graph.pick(0, 1)
    weights = graph.floats(*((columns, depth) if trans_b else (depth, columns))) / np.sqrt(depth)
    bias = graph.floats(*graph.pick((columns,), (1, columns), (rows, 1), ()))
    return graph.add(
        "Gemm", value, graph.constant(weights), graph.constant(bias), shape=(rows, columns),
        transB=trans_b, alpha=graph.pick(1.0, 0.5), beta=graph.pick(1.0, 2.0),
    )  # fmt: skip


@step(ranks=[3, 4], weight=3)
def convolution(graph: RandomGraph, value: Value) -> Value | None:
    """Depthwise, grouped or full, often with BatchNormalization and an activation."""
    channels, sides = value.shape[1], value.shape[2:]
    if channels > 64:
        return None
    group = graph.pick(1, 1, channels, 2 if channels % 2 == 0 else 1)
    outputs = group * graph.integer(1, 16 if group == 1 else 3)
    kernel = [graph.integer(1, min(4, side)) for side in sides]
    pads = [graph.integer(0, 1) for _ in range(2 * len(sides))]
    strides = [graph.integer(1, 2) for _ in sides]
    extents = [
        (side + pads[i] + pads[i + len(sides)] - kernel[i]) // strides[i] + 1
        for i, side in enumerate(sides)
    ]
    fan = channels // group * np.prod(kernel)
    weights = graph.floats(outputs, channels // group, *kernel) / np.sqrt(fan)
    inputs = [graph.constant(weights)]
    if graph.chance(0.7):
        inputs.append(graph.constant(graph.floats(outputs)))
    shape = (value.shape[0], outputs, *extents)
    made = graph.add("Conv", value, *inputs, shape=shape, group=group, pads=pads, strides=strides)
    if graph.chance(0.4):
        scale, bias, mean = (graph.floats(outputs) for _ in range(3))
        variance = graph.random.random(outputs) + 0.5
        statistics = [graph.constant(each) for each in (scale, bias, mean, variance)]
        made = graph.add("BatchNormalization", made, *statistics, shape=shape)
    if graph.chance(0.5):
        made = graph.add(graph.pick(*ACTIVATIONS), made, shape=shape)
    return made


@step(ranks=[4])
def transposed_convolution(graph: RandomGraph, value: Value) -> Value | None:
    if value.shape[1] > 64 or value.size > 6000:
        return None
    outputs, sides = graph.integer(1, 8), value.shape[2:]
    kernel = [graph.integer(1, 3) for _ in sides]
    strides = [graph.integer(1, 2) for _ in sides]
    extents = [
        (side - 1) * stride + size
        for side, stride, size in zip(sides, strides, kernel, strict=True)
    ]
    weights = graph.constant(graph.floats(value.shape[1], outputs, *kernel) / value.shape[1] ** 0.5)
    shape = (value.shape[0], outputs, *extents)
    return graph.add("ConvTranspose", value, weights, shape=shape, strides=strides)


@step(ranks=[4])
def pool(graph: RandomGraph, value: Value) -> Value:
    sides = value.shape[2:]
    kernel = [graph.integer(1, min(3, side)) for side in sides]
    strides = [graph.integer(1, 2) for _ in sides]
    pads = [graph.integer(0, size - 1) for size in kernel] * 2
    ceil_mode = graph.pick(0, 1)
    extents = []
    for i, side in enumerate(sides):
        steps = side + 2 * pads[i] - kernel[i]
        extent = (-(-steps // strides[i]) if ceil_mode else steps // strides[i]) + 1
        # No window begins in the padding at the end.
        is_outside = ceil_mode and (extent - 1) * strides[i] >= side + pads[i]
        extents.append(extent - 1 if is_outside else extent)
    more = {}
    if graph.chance(0.5):
        op_type = "MaxPool"
    else:
        op_type = "AveragePool"
        more = {"count_include_pad": 0 if ceil_mode else graph.pick(0, 1)}
    return graph.add(
        op_type, value, shape=(*value.shape[:2], *extents),
        kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=ceil_mode, **more,
    )  # fmt: skip


@step()
def reduction(graph: RandomGraph, value: Value) -> Value:
    kinds = ("Mean", "Sum", "Max", "Min", "L2", "SumSquare", "L1", "LogSumExp")
    axes = some_axes(graph, value)
    keepdims = graph.pick(0, 1)
    names = graph.integers(*(axis - graph.pick(0, value.rank) for axis in axes))
    return graph.add(
        "Reduce" + graph.pick(*kinds), value, names, shape=reduced(value, axes, keepdims),
        keepdims=keepdims,
    )  # fmt: skip


@step()
def place_of_extreme(graph: RandomGraph, value: Value) -> Value | None:
    """Of an input: results may be equal but for their last bit."""
    if not value.name.startswith("x"):
        return None
    axis, keepdims = graph.integer(0, value.rank - 1), graph.pick(0, 1)
    place = graph.node(graph.pick("ArgMax", "ArgMin"), value, axis=axis, keepdims=keepdims)
    return graph.add("Cast", place, shape=reduced(value, [axis], keepdims), to=TensorProto.FLOAT)


@step()
def softmax(graph: RandomGraph, value: Value) -> Value:
    axis = graph.integer(-value.rank, value.rank - 1)
    return graph.add(graph.pick("Softmax", "LogSoftmax"), value, shape=value.shape, axis=axis)


@step(ranks=range(2, 6))
def layer_normalization(graph: RandomGraph, value: Value) -> Value:
    axis = graph.integer(1, value.rank - 1)
    shape = value.shape[axis:]
    inputs = [graph.constant(graph.random.random(shape) + 0.5)]
    if graph.chance(0.7):
        inputs.append(graph.constant(graph.floats(*shape)))
    return graph.add(
        "LayerNormalization", value, *inputs, shape=value.shape, axis=axis, epsilon=1e-3
    )


@step(ranks=[3, 4])
def instance_normalization(graph: RandomGraph, value: Value) -> Value:
    channels = value.shape[1]
    scale = graph.constant(graph.random.random(channels) + 0.5)
    bias = graph.constant(graph.floats(channels))
    return graph.add("InstanceNormalization", value, scale, bias, shape=value.shape, epsilon=1e-3)


@step()
def cumulative_sum(graph: RandomGraph, value: Value) -> Value:
    axis = graph.constant(graph.integer(0, value.rank - 1), "int64")
    more = {"exclusive": graph.pick(0, 1), "reverse": graph.pick(0, 1)}
    return graph.add("CumSum", value, axis, shape=value.shape, **more)


@step()
def quantised_and_back(graph: RandomGraph, value: Value) -> Value:
    """As in a model with QDQ nodes, by powers of two: the results are exact."""
    zero_point = graph.constant(*graph.pick((128, "uint8"), (0, "int8"), (117, "uint8")))
    scale = graph.constant(graph.pick(2**-6, 2**-5))
    quantised = graph.node("QuantizeLinear", value, scale, zero_point)
    return graph.add("DequantizeLinear", quantised, scale, zero_point, shape=value.shape)


def positive(graph: RandomGraph, value: Value) -> Value:
    """At least a half."""
    absolute = graph.add("Abs", value, shape=value.shape)
    return graph.add("Add", absolute, graph.constant(0.5), shape=value.shape)


def some_axes(graph: RandomGraph, value: Value) -> list[int]:
    """At least one of the axes."""
    chosen = graph.random.integers(0, value.rank, graph.integer(1, value.rank))
    return sorted({int(axis) for axis in chosen})


def reduced(value: Value, axes: Sequence[int], keepdims: int) -> list[int]:
    """The shape without some axes, or with 1 there."""
    if keepdims:
        return [1 if i in axes else d for i, d in enumerate(value.shape)]
    return [d for i, d in enumerate(value.shape) if i not in axes]

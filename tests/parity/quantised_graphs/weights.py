"""Constant weights in the forms in which quantised models keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper
from parity.quantised_graphs.graph import RANGES, WIDE_TYPES, Exact

if TYPE_CHECKING:
    from parity.quantised_graphs.graph import QuantisedGraph

    Array = np.ndarray[Any, np.dtype[Any]]

SEVEN_BITS = (-64, 63)
"""Signed weights of integer operators: without VNNI onnxruntime saturates sums of larger ones."""


@dataclass(frozen=True)
class IntegerWeights:
    """Weights as integers, with one scale or one for each filter; zero points are never omitted."""

    name: str
    scale_name: str
    zero_name: str
    scales: Array
    largest: float
    typical: float
    dtype: str


def dequantised_weights(
    graph: QuantisedGraph, shape: tuple[int, ...], axis: int, *, typical: float = 1.0
) -> Exact:
    """float32 weights that a DequantizeLinear makes: by tensor, by `axis`, or in blocks of it."""
    kinds = ["int8", "int8", "uint8"]
    if graph.opset >= WIDE_TYPES:
        kinds += ["int4", "uint4"]
    dtype = graph.pick(*kinds)
    low, high = RANGES[dtype]
    values = graph.random.integers(low, high + 1, shape)
    base = 2.0 ** round(np.log2(2 * typical / (high - low)))
    form = graph.pick("tensor", "axis", "axis", "blocks" if graph.opset >= WIDE_TYPES else "axis")
    turned = len(shape) == 2 and form != "blocks" and graph.chance(0.3)
    if turned:
        values, axis = values.T, 1 - axis
    size = values.shape[axis]
    attributes: dict[str, Any] = {}
    scale_shape: tuple[int, ...] = graph.pick((), (1,))
    if form == "axis":
        scale_shape, attributes = (size,), {"axis": axis - graph.pick(0, len(shape))}
    if form == "blocks":
        blocked = len(shape) - 1 - axis if len(shape) == 2 else 1
        block = graph.pick(*(d for d in (1, 2, 4, 8, 16) if values.shape[blocked] % d == 0))
        scale_shape = tuple(d // block if i == blocked else d for i, d in enumerate(values.shape))
        attributes = {"axis": blocked, "block_size": block}
    scales = (base * 2.0 ** graph.random.integers(-1, 2, scale_shape)).astype(np.float32)
    zeros = np.zeros(scale_shape, np.int64)
    if dtype.startswith("u"):
        zeros = zeros + (high + 1) // 2
    if graph.chance(0.25):
        zeros = graph.random.integers(low // 3, high // 3 + 1, scale_shape)
    inputs = [integer_constant(graph, values, dtype), graph.constant(scales)]
    if zeros.any() or graph.chance(0.6):
        inputs.append(integer_constant(graph, zeros, dtype))
    if dtype == "int8" and len(inputs) == 3 and graph.chance(0.2) and form != "blocks":
        # A float32 constant that the model itself quantises, which engines fold.
        expanded = (
            (np.asarray(a).reshape([-1 if i == axis else 1 for i in range(len(shape))]))
            if form == "axis" else a for a in (scales, zeros)
        )  # fmt: skip
        wide, shifted = expanded
        stored = graph.constant(((values - shifted) * wide).astype(np.float32))
        inputs[0] = graph.node("QuantizeLinear", stored, *inputs[1:], **attributes)
    name = graph.node("DequantizeLinear", *inputs, **attributes)
    if turned:
        name = graph.node("Transpose", name, perm=[1, 0])
    largest = float(np.abs(values).max() + np.abs(zeros).max()) * float(scales.max())
    return Exact(name, shape, float(scales.min()), largest, typical)


def integer_constant(graph: QuantisedGraph, values: Array, dtype: str) -> str:
    """An initializer of integers, of 4 bits too."""
    if dtype not in ("int4", "uint4"):
        return graph.constant(values, dtype)
    name = graph.new_name()
    kind = TensorProto.INT4 if dtype == "int4" else TensorProto.UINT4
    graph.initializers.append(
        helper.make_tensor(name, kind, values.shape, values.reshape(-1).tolist())
    )
    return name


def integer_weights(
    graph: QuantisedGraph, shape: tuple[int, ...], axis: int, dtype: str, *, by_axis: bool,
    typical: float = 1.0, shared_zero: bool = False,
) -> IntegerWeights:  # fmt: skip
    """Weights for operators that read integers.

    Args:
        graph: Which gets the initializers.
        shape: Theirs.
        axis: Along which each has a scale.
        dtype: int8 or uint8.
        by_axis: Whether scales are a vector.
        typical: Usual magnitude.
        shared_zero: Whether all zero points have to be equal.
    """
    low, high = SEVEN_BITS if dtype == "int8" else RANGES[dtype]
    values = graph.random.integers(low, high + 1, shape)
    counts = (shape[axis],) if by_axis else ()
    base = 2.0 ** round(np.log2(2 * typical / (high - low)))
    scales = (base * 2.0 ** graph.random.integers(-1, 2, counts)).astype(np.float32)
    zeros = np.zeros(counts, np.int64)
    if dtype == "uint8":
        zeros = zeros + 128
        if graph.chance(0.4):
            zeros = graph.random.integers(90, 160, () if shared_zero else counts) + 0 * zeros
    names = graph.constant(values, dtype), graph.constant(scales), graph.constant(zeros, dtype)
    largest = float(np.abs(values - 0).max() + np.abs(zeros).max()) * float(scales.max())
    return IntegerWeights(*names, scales, largest, typical, dtype)

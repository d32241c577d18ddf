"""Operators whose inputs, attributes or meaning changed between opsets, in the form of each opset.

ONNX's own suite has cases for the newest version of an operator alone, with known shapes.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

IR_VERSION = 8
REDUCTIONS = ("L1", "L2", "LogSum", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


class VersionedModel:
    """A model with a branch for each case: inputs and outputs are called after it."""

    def __init__(self, opset: int) -> None:
        """Begin without a branch, and add each of the opset."""
        self.opset = opset
        self.feed: dict[str, Array] = {}
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._outputs: list[str] = []
        for write in (_reductions, _axes, _slices, _selections, _elementwise, _windows, _steps):
            write(self)

    def build(self, *, free: bool) -> bytes:
        """The model, with inputs of free or of known sizes."""
        infos = [
            helper.make_tensor_value_info(
                name,
                helper.np_dtype_to_tensor_dtype(values.dtype),
                [f"{name}.{place}" if free else size for place, size in enumerate(values.shape)],
            )
            for name, values in self.feed.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in self._outputs]
        graph = helper.make_graph(self._nodes, "versions", infos, outputs, self._constants)
        imports = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=imports)
        return bytes(model.SerializeToString())

    def values(self, *shape: int, least: float = -1.0) -> Array:
        """Random numbers from `least` to 1."""
        numbers = self._random.random(shape, dtype=np.float32) * np.float32(1 - least)
        return numbers + np.float32(least)

    def add(
        self,
        name: str,
        op_type: str,
        inputs: Sequence[Array],
        constants: Sequence[Array | None] = (),
        outputs: int = 1,
        **attributes: Any,
    ) -> None:
        """A branch of one node, whose constants, None for an omitted one, follow its inputs."""
        read = [f"{name}.{letter}" for letter, _ in zip("xyz", inputs, strict=False)]
        self.feed |= dict(zip(read, inputs, strict=True))
        for place, constant in enumerate(constants):
            held = "" if constant is None else f"{name}.constant{place}"
            read.append(held)
            if constant is not None:
                self._constants.append(numpy_helper.from_array(constant, held))
        made = [f"{name}.out{place}" for place in range(outputs)]
        self._outputs += made
        self._nodes.append(helper.make_node(op_type, read, made, name=name, **attributes))

    def add_axes(
        self, name: str, op_type: str, data: Array, axes: Iterable[int], since: int, **others: Any
    ) -> None:
        """The same with axes as an input from opset `since` on, and as an attribute before."""
        if self.opset >= since:
            self.add(name, op_type, [data], [integers(*axes)], **others)
        else:
            self.add(name, op_type, [data], axes=list(axes), **others)


def integers(*values: int) -> Array:
    """A constant of one dimension."""
    return np.array(values, np.int64)


def _reductions(model: VersionedModel) -> None:
    data = model.values(2, 3, 4, 5, least=0.3)
    for kind, axes, keepdims in product(REDUCTIONS, ((1,), (0, 2), (1, 2, 3)), (0, 1)):
        since = 13 if kind == "Sum" else 18
        name = f"Reduce{kind} of {axes}, keepdims={keepdims}"
        model.add_axes(name, f"Reduce{kind}", data, axes, since, keepdims=keepdims)
    for op_type, axis, keepdims in product(("ArgMax", "ArgMin"), (0, 2), (0, 1)):
        name = f"{op_type} of {axis}, keepdims={keepdims}"
        model.add(name, op_type, [data], axis=axis, keepdims=keepdims)


def _axes(model: VersionedModel) -> None:
    data = model.values(2, 3, 4, 5)
    axes = (None, 0, 1, 2, *((-1,) if model.opset >= 11 else ()))
    for op_type, axis in product(("Softmax", "LogSoftmax", "Hardmax", "Flatten"), axes):
        attributes: Mapping[str, int] = {} if axis is None else {"axis": axis}
        model.add(f"{op_type} of {axis}", op_type, [data], **attributes)
    for at in ((1,), (1, 3)):
        model.add_axes(f"Squeeze of {at}", "Squeeze", model.values(2, 1, 4, 1), at, 13)
    for at in ((0,), (1, 3)):
        model.add_axes(f"Unsqueeze of {at}", "Unsqueeze", model.values(3, 4), at, 13)


def _slices(model: VersionedModel) -> None:
    data = model.values(2, 3, 4, 5)
    for begin, end, axis in ((1, 3, 2), (-3, -1, 3), (1, 1000, 1)):
        name = f"Slice from {begin} to {end} of {axis}"
        if model.opset >= 10:
            model.add(name, "Slice", [data], [integers(begin), integers(end), integers(axis)])
        else:
            model.add(name, "Slice", [data], starts=[begin], ends=[end], axes=[axis])
    if model.opset >= 13:
        model.add("Split", "Split", [data], [integers(1, 2)], 2, axis=1)
    else:
        model.add("Split", "Split", [data], outputs=2, axis=1, split=[1, 2])
    pads = (0, 1, 1, 2, 0, 0, 2, 1)
    for mode in ("constant", "edge", "reflect"):
        if model.opset >= 11:
            model.add(f"Pad by {mode}", "Pad", [data], [integers(*pads)], mode=mode)
        else:
            model.add(f"Pad by {mode}", "Pad", [data], mode=mode, pads=list(pads))


def _selections(model: VersionedModel) -> None:
    data = model.values(2, 3, 4, 5)
    if model.opset >= 10:
        model.add("TopK", "TopK", [data], [integers(2)], 2, axis=1)
    else:
        model.add("TopK", "TopK", [data], outputs=2, axis=1, k=2)
    for axis in (0, 2):
        model.add(f"Gather of {axis}", "Gather", [data, np.array([0, 1])], axis=axis)
    if model.opset >= 9:
        constants = [np.array(3), np.array([0, 1], np.float32)]
        model.add("OneHot", "OneHot", [np.array([[0, 2], [-1, 1]])], constants, axis=1)
    if model.opset >= 11:
        places = np.array([[0, 1], [2, 3], [-1, 0]])
        inputs = [model.values(3, 4), places, model.values(3, 2)]
        model.add("ScatterElements", "ScatterElements", inputs, axis=1)
        model.add("CumSum", "CumSum", [data], [np.array(1)], reverse=1, exclusive=1)


def _elementwise(model: VersionedModel) -> None:
    data, other = model.values(2, 3, 4, 5), model.values(4, 1)
    low, high = np.array(-0.3, np.float32), np.array(0.4, np.float32)
    if model.opset >= 11:
        model.add("Clip", "Clip", [data], [low, high])
        model.add("Clip from above", "Clip", [data], [None, high])
    else:
        model.add("Clip", "Clip", [data], min=float(low), max=float(high))
        model.add("Clip from above", "Clip", [data], max=float(high))
    for op_type in ("Add", "Div", "Greater", "Max", "Mean", "Min", "Mul", "Sub", "Sum"):
        model.add(op_type, op_type, [data, other])
    for op_type in ("Elu", "HardSigmoid", "LeakyRelu", "Selu", "Softplus", "Softsign"):
        model.add(op_type, op_type, [data])
    model.add("PRelu", "PRelu", [data], [model.values(3, 1, 1)])
    model.add("Expand", "Expand", [model.values(2, 1, 4, 1)], [integers(1, 3, 1, 2)])
    if model.opset >= 10:
        scale, zero = np.array(0.125, np.float32), np.array(3, np.int8)
        model.add("QuantizeLinear", "QuantizeLinear", [data], [scale, zero])
    if model.opset >= 13:
        constants = [np.array([0.25, 0.5, 1], np.float32), np.array([3, 100, 130], np.uint8)]
        model.add("QuantizeLinear of 1", "QuantizeLinear", [data * 9], constants, axis=1)
    for trans_a, trans_b in product((0, 1), (0, 1)):
        left = model.values(*((4, 3) if trans_a else (3, 4)))
        right = model.values(*((2, 4) if trans_b else (4, 2)))
        name = f"Gemm transA={trans_a} transB={trans_b}"
        model.add(name, "Gemm", [left], [right, model.values(2)], transA=trans_a, transB=trans_b)


def _windows(model: VersionedModel) -> None:
    image, filters = model.values(1, 4, 8, 7), model.values(6, 4, 3, 3)
    two = [2, 2]
    for mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        model.add(f"Conv {mode}", "Conv", [image], [filters], auto_pad=mode, strides=two)
        weights = [model.values(4, 3, 3, 3)]
        name = f"ConvTranspose {mode}"
        model.add(name, "ConvTranspose", [image], weights, auto_pad=mode, strides=two)
        name = f"MaxPool {mode}"
        model.add(name, "MaxPool", [image], kernel_shape=[3, 3], auto_pad=mode, strides=two)
    if model.opset >= 10:
        for op_type in ("AveragePool", "MaxPool"):
            model.add(
                f"{op_type} up", op_type, [image], kernel_shape=[3, 3], strides=two, ceil_mode=1
            )
    double = np.array([1, 1, 2, 2], np.float32)
    for mode in ("nearest", "linear"):
        name = f"Resize by {mode}"
        if model.opset >= 11:
            none = np.zeros(0, np.float32)
            model.add(name, "Resize", [image], [none, double], mode=mode)
            pixels = (image * 100).astype(np.uint8)
            model.add(f"{name} of bytes", "Resize", [pixels], [none, double], mode=mode)
        elif model.opset >= 9:
            op_type = "Resize" if model.opset == 10 else "Upsample"
            model.add(name, op_type, [image], [double], mode=mode)
        else:
            model.add(name, "Upsample", [image], mode=mode, scales=double.tolist())
    if model.opset >= 9:
        numbers = [model.values(4), model.values(4), model.values(4), model.values(4, least=0.5)]
        model.add("BatchNormalization", "BatchNormalization", [image], numbers)
    scales = [model.values(4), model.values(4)]
    model.add("InstanceNormalization", "InstanceNormalization", [image], scales)
    model.add("DepthToSpace", "DepthToSpace", [image], blocksize=2)


def _steps(model: VersionedModel) -> None:
    for (op_type, gates), direction in product(
        (("LSTM", 4), ("GRU", 3), ("RNN", 1)), ("reverse", "bidirectional")
    ):
        ways = 2 if direction == "bidirectional" else 1
        constants = [
            model.values(ways, gates * 4, 3),
            model.values(ways, gates * 4, 4),
            model.values(ways, gates * 8),
        ]
        model.add(
            f"{op_type} {direction}",
            op_type,
            [model.values(5, 2, 3)],
            constants,
            2,
            hidden_size=4,
            direction=direction,
        )

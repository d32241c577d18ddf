"""DequantizeLinear, an operator and QuantizeLinear: integers in memory between kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from opencl_devices import device_names, first_working_device, skip_without_cpu_first

import ort_lite as ort
from eps.opencl.compile.compile_partition import compile_partition
from eps.opencl.runtime.describe_target import describe_target
from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.program_spec import ProgramSpec

    Array = np.ndarray[Any, np.dtype[Any]]

OPENCL = "OpenCLExecutionProvider"
DEVICES = device_names()


class QdqGraph:
    """A chain of operators, each between DequantizeLinear and QuantizeLinear."""

    def __init__(self, shape: Sequence[int], *, signed: bool, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.kind = np.dtype(np.int8 if signed else np.uint8)
        self.shape = tuple(shape)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.last = self.quantized("x", 0.02)
        self.ends: list[str] = []

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{op_type}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name, **attributes))
        return name

    def steps(self, scale: float) -> list[str]:
        zero = int(self.random.integers(-9, 10)) + (0 if self.kind == np.int8 else 128)
        return [
            self.constant(np.array(scale, np.float32)),
            self.constant(np.array(zero, self.kind)),
        ]

    def quantized(self, value: str, scale: float) -> str:
        """What DequantizeLinear gives back of a value."""
        steps = self.steps(scale)
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [value, *steps]), *steps])

    def weight(self, shape: Sequence[int], axis: int | None, most: int = 127) -> str:
        values = self.constant(self.random.integers(-most, most + 1, shape).astype(np.int8))
        if axis is None:
            return self.node(
                "DequantizeLinear", [values, self.constant(np.array(0.01, np.float32))]
            )
        n = shape[axis]
        scales = self.constant((self.random.random(n) / 100 + 0.001).astype(np.float32))
        zeros = self.constant(np.zeros(n, np.int8))
        return self.node("DequantizeLinear", [values, scales, zeros], axis=axis)

    def bias(self, n: int) -> str:
        values = self.constant(self.random.integers(-2000, 2000, n).astype(np.int32))
        return self.node("DequantizeLinear", [values, self.constant(np.array(2e-4, np.float32))])

    def model(self, opset: int = 20) -> Any:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            for name in self.ends or [self.last]
        ]
        graph = helper.make_graph(self.nodes, "qdq", [x], ends, self.constants)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9
        )

    def feed(self) -> dict[str, Array]:
        return {"x": np.random.default_rng(9).standard_normal(self.shape, np.float32)}


def convolutions(*, signed: bool, axis: int | None) -> QdqGraph:
    """A small network: padding of every kind, groups, depthwise, residuals, a classifier."""
    graph = QdqGraph((2, 3, 12, 11), signed=signed, seed=3)

    def conv(value: str, o: int, c: int, k: int, after: str = "", **attributes: Any) -> str:
        inputs = [value, graph.weight((o, c, k, k), axis), graph.bias(o)]
        made = graph.node("Conv", inputs, **attributes)
        made = graph.node(after, [made]) if after else made
        return graph.quantized(made, 0.05)

    first = conv(graph.last, 16, 3, 3, "Relu", pads=[1, 1, 1, 1])
    pooled = graph.quantized(
        graph.node("MaxPool", [first], kernel_shape=[2, 2], strides=[2, 2]), 0.05
    )
    left = conv(pooled, 16, 1, 3, "Relu", pads=[1, 0, 1, 2], group=16)
    left = conv(left, 16, 16, 1)
    total = graph.quantized(graph.node("Add", [left, pooled]), 0.06)
    total = graph.quantized(graph.node("Relu", [total]), 0.06)
    wide = conv(total, 12, 4, 3, "Sigmoid", pads=[0, 1, 2, 1], group=4, strides=[2, 1])
    joined = graph.quantized(graph.node("Concat", [wide, wide], axis=1), 0.05)
    mean = graph.quantized(graph.node("GlobalAveragePool", [joined]), 0.01)
    flat = graph.node("Flatten", [mean])
    weight = graph.weight((10, 24), 0 if axis == 0 else None)
    graph.last = graph.quantized(graph.node("Gemm", [flat, weight, graph.bias(10)], transB=1), 0.02)
    return graph


def products(*, signed: bool, axis: int | None) -> QdqGraph:
    """What a transformer has: weights on the right, and products of two results."""
    graph = QdqGraph((2, 9, 24), signed=signed, seed=4)
    x = graph.last
    biased = graph.node(
        "Add", [graph.node("MatMul", [x, graph.weight((24, 33), axis)]), graph.bias(33)]
    )
    turned = graph.node("Transpose", [x], perm=[0, 2, 1])
    rows = graph.node("Reshape", [x, graph.constant(np.array([18, 24]))])
    weight = graph.weight((20, 24), None if axis is None else 0)
    graph.ends = [
        graph.quantized(graph.node("Gelu", [biased]), 0.05),
        graph.quantized(graph.node("MatMul", [x, turned]), 0.2),
        graph.quantized(graph.node("Gemm", [rows, weight], transB=1, alpha=0.5), 0.05),
        graph.node("MatMul", [x, graph.weight((24, 8), axis)]),
    ]
    return graph


def run_here(graph: QdqGraph, device: str) -> list[Array]:
    """Every node is on the device, and the second run gives the bits of the first."""
    providers = [(OPENCL, {"device": device}), "CPUExecutionProvider"]
    with ort.InferenceSession(graph.model().SerializeToString(), providers=providers) as session:
        assert set(session.explain().node_counts()) == {OPENCL}
        first = session.run(None, graph.feed())
        for again, before in zip(session.run(None, graph.feed()), first, strict=True):
            np.testing.assert_array_equal(again, before)
    return [np.asarray(value) for value in first]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["unsigned", "signed"])
@pytest.mark.parametrize("axis", [None, 0])
def test_a_quantised_network_is_that_of_onnx(device: str, kind: str, axis: int | None) -> None:
    """To both judges; a step rounded the other way in the first layers may be two at the end."""
    graph = convolutions(signed=kind == "signed", axis=axis)
    model, feed = graph.model(), graph.feed()
    (found,) = run_here(graph, device)
    (right,) = ReferenceEvaluator(model).run(None, feed)
    peer = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, feed)[0]
    for judge in (right, peer):
        steps = np.abs(np.rint((found - judge) / 0.02))
        assert steps.max() <= 2
        assert np.mean(steps) <= 0.25
    assert np.unique(right).size > 5


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["unsigned", "signed"])
@pytest.mark.parametrize("axis", [None, 1])
def test_one_layer_is_that_of_onnx_to_a_step(device: str, kind: str, axis: int | None) -> None:
    graph = products(signed=kind == "signed", axis=axis)
    right = ReferenceEvaluator(graph.model()).run(None, graph.feed())
    for mine, theirs, step in zip(
        run_here(graph, device), right, (0.05, 0.2, 0.05, 0.0), strict=True
    ):
        away = np.abs(mine - theirs)
        assert away.max() <= max(1.01 * step, 1e-5 * np.abs(theirs).max())
        assert np.count_nonzero(away > step / 2) <= away.size // 100 or not step
        assert np.unique(theirs).size > 20


def drawn(graph: QdqGraph) -> ProgramSpec:
    loaded = loader.load(graph.model().SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    target = describe_target(first_working_device())
    return compile_partition(
        whole.extract(range(len(whole.nodes)), "qdq"), {"x": graph.shape}, target
    )


def test_a_layer_is_one_kernel_over_bytes() -> None:
    """Dequantising, the activation and quantising are inside of it, and weights take a byte."""
    skip_without_cpu_first()
    graph = QdqGraph((1, 16, 8, 8), signed=False, seed=5)
    for _ in range(3):
        made = graph.node("Conv", [graph.last, graph.weight((16, 16, 3, 3), 0, 64)], pads=[1] * 4)
        graph.last = graph.quantized(graph.node("Relu", [made]), 0.05)
    found = drawn(graph)
    assert len(found.calls) == 1 + 3 + 1
    assert found.notes == ("products and convolutions of 8-bit integers: 3",)
    weights = [w.data.nbytes for w in found.weights if w.data.nbytes >= 16 * 16 * 9]
    assert len(weights) == 3
    assert max(weights) <= 16 * 16 * 9 * 1.05
    assert found.fills


@pytest.mark.parametrize("opset", [13, 19])
def test_weights_are_known_at_every_opset(opset: int) -> None:
    """What onnxruntime's quantiser writes is mostly of opset 13."""
    graph = QdqGraph((1, 8, 6, 6), signed=True, seed=6)
    made = graph.node("Conv", [graph.last, graph.weight((9, 8, 3, 3), 0), graph.bias(9)])
    graph.last = graph.quantized(made, 0.05)
    data = graph.model(opset).SerializeToString()
    peer = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    with ort.InferenceSession(data, providers=[OPENCL]) as session:
        explained = session.explain()
        assert set(explained.node_counts()) == {OPENCL}
        assert explained.partitions[0].notes == ("products and convolutions of 8-bit integers: 1",)
        (found,) = session.run(None, graph.feed())
    (right,) = peer.run(None, graph.feed())
    assert np.abs(found - right).max() <= 1.01 * 0.05

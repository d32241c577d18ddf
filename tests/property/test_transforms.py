"""Random graphs: transformed, they give what onnxruntime gives of them untransformed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from unit.transforms.transformed import CPU, Values, expected, run

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(24)
UNARY = ("Abs", "Neg", "Relu", "Tanh", "Sigmoid", "Identity", "Erf", "Softplus")
BINARY = ("Add", "Sub", "Mul", "Max")
ROWS, COLUMNS = 3, 4


class Maker:
    """A graph of matrices [3, 4], full of what rules look for: constants, twins, no-ops."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.values = ["x"]
        self.weights: dict[str, np.ndarray] = {}

    def model(self, size: int) -> bytes:
        for _ in range(size):
            self.values.append(self.random.choice(self.STEPS)(self))
        finals = dict.fromkeys([self.values[-1], *self.random.sample(self.values[1:], 2)])
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "random",
            [info("x", TensorProto.FLOAT, [ROWS, COLUMNS])],
            [info(name, TensorProto.FLOAT, [ROWS, COLUMNS]) for name in finals],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        onnx.checker.check_model(model)
        return model.SerializeToString()

    def node(self, operator: str, inputs: list[str], **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def any(self) -> str:
        return self.random.choice(self.values)

    def unary(self) -> str:
        return self.node(self.random.choice(UNARY), [self.any()])

    def binary(self) -> str:
        return self.node(self.random.choice(BINARY), [self.any(), self.any()])

    def twin(self) -> str:
        if not self.nodes:
            return self.unary()
        old = self.random.choice(self.nodes)
        name = f"v{len(self.nodes)}"
        copy = onnx.NodeProto()
        copy.CopyFrom(old)
        copy.name = copy.output[0] = name
        self.nodes.append(copy)
        return name if name_has_shape(old) else self.unary()

    def constant(self) -> str:
        shape = self.random.choice([(), (1,), (COLUMNS,), (1, COLUMNS), (ROWS, COLUMNS)])
        value = self.random.choice([0.0, 1.0, -0.0, 0.5, None])
        array = self.numbers.standard_normal(shape) if value is None else np.full(shape, value)
        given = self.weight(np.asarray(array, np.float32))
        folded = self.node("Neg", [given]) if self.random.random() < 0.3 else given
        return self.node(self.random.choice(BINARY), [self.any(), folded])

    def dense(self) -> str:
        scale = 1 / COLUMNS
        square = self.weight((self.numbers.random((COLUMNS, COLUMNS)) * scale).astype(np.float32))
        row = self.weight(self.numbers.random(COLUMNS).astype(np.float32))
        product = self.node("MatMul", [self.any(), square])
        return self.node("Add", [product, row] if self.random.random() < 0.5 else [row, product])

    def turned(self) -> str:
        first = self.node("Transpose", [self.any()], perm=[1, 0])
        return self.node("Transpose", [first], perm=[1, 0])

    def shaped(self) -> str:
        shape = self.node("Shape", ["x"])
        return self.node("Reshape", [self.any(), shape])

    def cast(self) -> str:
        wide = self.node("Cast", [self.any()], to=TensorProto.DOUBLE)
        return self.node("Cast", [wide], to=TensorProto.FLOAT)

    STEPS = (unary, unary, binary, binary, twin, constant, constant, dense, turned, shaped, cast)


def name_has_shape(node: onnx.NodeProto) -> bool:
    """Whether a node of ours makes a float matrix of the one shape."""
    return node.op_type in ("Abs", "Relu", "Tanh", "Sigmoid", "Identity", "Erf", "Softplus", "Add")


def near(mine: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        bound = 1e-4 * float(np.abs(b).max(initial=0)) + 1e-6
        assert float(np.abs(a - b).max(initial=0)) <= bound


def feed(seed: int) -> Values:
    return {"x": np.random.default_rng(seed).standard_normal((ROWS, COLUMNS)).astype(np.float32)}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_graph_keeps_its_numbers(seed: int) -> None:
    model = Maker(seed).model(25)
    near(run(model, feed(seed)).outputs, expected(model, feed(seed)))


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_a_random_graph_runs_alike_where_it_was_saved_and_reloaded(
    seed: int, tmp_path: Path
) -> None:
    model, path = Maker(seed).model(25), tmp_path / "m.onnx"
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(path)
    with ort.InferenceSession(model, options, providers=CPU) as session:
        found = session.run(None, feed(seed))
        np.testing.assert_array_equal(session.run(None, feed(seed))[0], found[0])
    near(found, onnxruntime.InferenceSession(path, providers=CPU).run(None, feed(seed)))


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_without_fusions_a_random_graph_keeps_its_bits(seed: int) -> None:
    """All rules but fusions and folding promise the same bits."""
    model = Maker(seed).model(25)
    plain = run(model, feed(seed), level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    changed = run(model, feed(seed), disabled=("GeluFusion", "LayerNormFusion", "ConvBNFusion"))
    for mine, theirs in zip(changed.outputs, plain.outputs, strict=True):
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(theirs))
        np.testing.assert_array_equal(mine, theirs)

"""Models of a few nodes, made with onnx's own helper, that many tests use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOAT = TensorProto.FLOAT


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, Sequence[int | str | None]]],
    outputs: Sequence[tuple[str, Sequence[int | str | None] | None]],
    weights: dict[str, np.ndarray] | None = None,
    *,
    opset: int = 17,
    contrib: bool = False,
) -> onnx.ModelProto:
    """A float32 model with the given nodes, inputs, outputs and initializers."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    imports = [helper.make_opsetid("", opset)]
    if contrib:
        imports.append(helper.make_opsetid("com.microsoft", 1))
    made = helper.make_model(graph, opset_imports=imports, ir_version=10)
    made.producer_name = "tests"
    return made


def mlp(rows: int | str = 2) -> onnx.ModelProto:
    """y = Relu(x @ w + b), x [rows, 4], y [rows, 3]: OpenVINO takes it whole."""
    random = np.random.default_rng(7)
    weights = {
        "w": random.standard_normal((4, 3)).astype(np.float32),
        "b": random.standard_normal(3).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], name="matmul"),
        helper.make_node("Add", ["xw", "b"], ["sum"], name="add"),
        helper.make_node("Relu", ["sum"], ["y"], name="relu"),
    ]
    return model(nodes, [("x", [rows, 4])], [("y", [rows, 3])], weights)


def tied(sign: float = 1.0, width: int = 128) -> onnx.ModelProto:
    """y = Tanh(x @ w) * sign, x [2, width]; every such model has the same large w."""
    weights = {
        "w": np.random.default_rng(11).standard_normal((width, width)).astype(np.float32),
        "s": np.full((width,), sign, np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Tanh", ["xw"], ["t"]),
        helper.make_node("Mul", ["t", "s"], ["y"]),
    ]
    return model(nodes, [("x", [2, width])], [("y", [2, width])], weights)


def sandwich() -> onnx.ModelProto:
    """OpenVINO, then a TopK that it computes in another order, then OpenVINO again."""
    random = np.random.default_rng(8)
    weights = {
        "w": random.standard_normal((4, 4)).astype(np.float32),
        "k": np.array([2], np.int64),
        "v": random.standard_normal((2, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("TopK", ["a", "k"], ["top", "at"], name="topk"),
        helper.make_node("MatMul", ["top", "v"], ["y"], name="last"),
    ]
    return model(nodes, [("x", [2, 4])], [("y", [2, 3])], weights)


def branching() -> onnx.ModelProto:
    """An If whose branches multiply a captured value by weights of their own."""
    random = np.random.default_rng(9)

    def branch(name: str) -> onnx.GraphProto:
        weight = numpy_helper.from_array(
            random.standard_normal((3, 3)).astype(np.float32), f"{name}_w"
        )
        nodes = [
            helper.make_node("MatMul", ["h", f"{name}_w"], [f"{name}_m"], name=f"{name}_matmul"),
            helper.make_node("Relu", [f"{name}_m"], [f"{name}_y"], name=f"{name}_relu"),
        ]
        out = helper.make_tensor_value_info(f"{name}_y", FLOAT, [2, 3])
        return helper.make_graph(nodes, name, [], [out], [weight])

    nodes = [
        helper.make_node("Abs", ["x"], ["h"], name="abs"),
        helper.make_node("ReduceSum", ["x"], ["total"], name="total", keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["positive"], name="greater"),
        helper.make_node(
            "If",
            ["positive"],
            ["y"],
            name="if",
            then_branch=branch("then"),
            else_branch=branch("else"),
        ),
    ]
    weights = {"zero": np.array(0.0, np.float32)}
    return model(nodes, [("x", [2, 3])], [("y", [2, 3])], weights)


def feed(proto: onnx.ModelProto, seed: int = 1) -> dict[str, np.ndarray]:
    """Random float32 inputs; a dimension without a size gets 2."""
    random = np.random.default_rng(seed)
    found = {}
    for info in proto.graph.input:
        dims = [d.dim_value or 2 for d in info.type.tensor_type.shape.dim]
        found[info.name] = random.standard_normal(dims).astype(np.float32)
    return found


def layers(columns: int, *, rows: int | str = 1) -> onnx.ModelProto:
    """Relu of a product with a matrix of so many columns, twice."""
    rng = np.random.default_rng(0)
    weights = {
        name: (rng.standard_normal((columns, columns)) / columns).astype(np.float32)
        for name in ("a", "b")
    }
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("MatMul", ["q", "b"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    return model(nodes, [("x", [rows, columns])], [("y", None)], weights)


def recurrence(op: str, hidden: int, *, sizes: tuple[int | str, int | str]) -> onnx.ModelProto:
    """An LSTM, GRU or RNN of one direction, with as many inputs as it has hidden values."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * hidden
    rng = np.random.default_rng(2)
    weights = {
        name: (rng.standard_normal((1, gates, hidden)) / hidden).astype(np.float32)
        for name in ("w", "r")
    }
    nodes = [helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=hidden)]
    return model(nodes, [("x", [*sizes, hidden])], [("y", None)], weights)

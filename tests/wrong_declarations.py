"""Models whose authors declared shapes that no run ever has; onnxruntime warns and runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from small_models import model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Shape = Sequence[int | str | None]
    Made = tuple[onnx.ModelProto, dict[str, np.ndarray[Any, Any]]]

FLOAT = TensorProto.FLOAT


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def chain(final: Shape, rows: int | str = 2, **inside: Shape) -> Made:
    """y = Sigmoid(Relu(x @ w) @ v), x [rows, 3, 8], y declared as `final`, in truth [2, 3, 4]."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MatMul", ["b", "v"], ["c"], name="last"),
        helper.make_node("Sigmoid", ["c"], ["y"], name="sigmoid"),
    ]
    made = model(
        nodes, [("x", [rows, 3, 8])], [("y", final)], {"w": drawn(8, 16), "v": drawn(16, 4)}
    )
    for name, shape in inside.items():
        made.graph.value_info.append(helper.make_tensor_value_info(name, FLOAT, shape))
    return made, {"x": drawn(2, 3, 8)}


def inner_output() -> Made:
    """A value inside, which is an output too, of another rank than declared."""
    made, fed = chain([2, 3, 4])
    made.graph.output.append(helper.make_tensor_value_info("b", FLOAT, [6, 16]))
    return made, fed


def recurrent() -> Made:
    """As a CRNN for text: y declared with rank 2, in truth [5, 1, 6]."""
    nodes = [
        helper.make_node("LSTM", ["x", "W", "R"], ["steps"], hidden_size=4, name="lstm"),
        helper.make_node("Squeeze", ["steps", "one"], ["squeezed"], name="squeeze"),
        helper.make_node("Reshape", ["squeezed", "flat"], ["rows"], name="rows"),
        helper.make_node("Gemm", ["rows", "w"], ["letters"], name="gemm"),
        helper.make_node("Reshape", ["letters", "whole"], ["y"], name="whole"),
    ]
    weights = {
        "W": drawn(1, 16, 8),
        "R": drawn(1, 16, 4),
        "w": drawn(4, 6),
        "one": np.array([1]),
        "flat": np.array([5, 4]),
        "whole": np.array([5, 1, 6]),
    }
    return model(nodes, [("x", [5, 1, 8])], [("y", [5, 6])], weights), {"x": drawn(5, 1, 8)}


def branches() -> Made:
    """Bodies of an If whose outputs have another rank than they declare."""
    bodies = {
        f"{side}_branch": helper.make_graph(
            [helper.make_node(op, ["b"], [side])],
            side,
            [],
            [helper.make_tensor_value_info(side, FLOAT, [3, 16])],
        )
        for side, op in (("then", "Relu"), ("else", "Neg"))
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["b"], name="matmul"),
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0, name="sum"),
        helper.make_node("Greater", ["sum", "zero"], ["more"], name="greater"),
        helper.make_node("If", ["more"], ["y"], name="if", **bodies),
    ]
    weights = {"w": drawn(8, 16), "zero": np.float32(0)}
    made = model(nodes, [("x", [2, 3, 8])], [("y", [2, 3, 16])], weights)
    return made, {"x": drawn(2, 3, 8)}


def rounds() -> Made:
    """The body of a Loop that declares another rank for what it is fed."""
    infos = {
        name: helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("i", TensorProto.INT64, []),
            ("on", TensorProto.BOOL, []),
            ("still", TensorProto.BOOL, []),
            ("old", FLOAT, [3, 16]),
            ("new", FLOAT, [3, 16]),
        )
    }
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["on"], ["still"], name="still"),
            helper.make_node("Add", ["old", "old"], ["new"], name="add"),
        ],
        "body",
        [infos["i"], infos["on"], infos["old"]],
        [infos["still"], infos["new"]],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["b"], name="matmul"),
        helper.make_node("Loop", ["three", "", "b"], ["y"], name="loop", body=body),
    ]
    weights = {"w": drawn(8, 16), "three": np.array(3)}
    return model(nodes, [("x", [2, 3, 8])], [("y", [3, 16])], weights), {"x": drawn(2, 3, 8)}


def widened() -> Made:
    """A scalar that a Loop carries, which comes back as [1] from an If with unlike branches.

    As PaddlePaddle's exporter writes "break": everything is declared as a scalar, and inference
    cannot tell, for the If gives [] or [1]. `total` stays a scalar.
    """
    then = helper.make_graph([_constant("new", 3)], "then_branch", [], [_scalar("new")])
    other = helper.make_graph(
        [
            helper.make_node("Neg", ["old"], ["less"], name="neg"),
            helper.make_node("Add", ["less", "one"], ["grown"], name="grow"),
        ],
        "else_branch",
        [],
        [_scalar("grown")],
    )
    nodes = [
        _constant("limit", 2),
        _constant("one", [1]),
        helper.make_node("Abs", ["total"], ["size"], name="size"),
        helper.make_node("Greater", ["size", "limit"], ["over"], name="over"),
        helper.make_node(
            "If", ["over"], ["chosen"], name="if", then_branch=then, else_branch=other
        ),
        helper.make_node("Exp", ["chosen"], ["risen"], name="rise"),
        helper.make_node("Mul", ["risen", "one"], ["next"], name="widen"),
        helper.make_node("Reshape", ["old", "scalar"], ["step"], name="step"),
        helper.make_node("Add", ["total", "step"], ["sum"], name="sum"),
    ]
    return _carrying(nodes, {"old": "next", "total": "sum"}, ["risen", "chosen", "size"])


def widened_without_branches() -> Made:
    """The same where inference sees how the value comes back, and what uses it is declared."""
    nodes = [
        _constant("one", [1]),
        helper.make_node("Exp", ["old"], ["risen"], name="rise"),
        helper.make_node("Sqrt", ["risen"], ["root"], name="root"),
        helper.make_node("Mul", ["root", "one"], ["next"], name="widen"),
        helper.make_node("Reshape", ["old", "scalar"], ["step"], name="step"),
        helper.make_node("Sub", ["total", "step"], ["rest"], name="rest"),
    ]
    return _carrying(nodes, {"old": "next", "total": "rest"}, ["risen"])


def _carrying(body: list[onnx.NodeProto], carried: dict[str, str], inside: list[str]) -> Made:
    """Four rounds of `body`; a value that begins as the sum of x, Tanh of it at the end."""
    given = [_scalar("i", TensorProto.INT64), _scalar("on", TensorProto.BOOL)]
    still = helper.make_node("Identity", ["on"], ["still"], name="still")
    loop = helper.make_graph(
        [*body, still],
        "body",
        [*given, *map(_scalar, carried)],
        [_scalar("still", TensorProto.BOOL), *map(_scalar, carried.values())],
        value_info=[_scalar(name) for name in inside],
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["first"], name="first", keepdims=0),
        helper.make_node(
            "Loop", ["four", "", "first", "first"], ["last", "y"], name="loop", body=loop
        ),
        helper.make_node("Tanh", ["last"], ["z"], name="tanh"),
    ]
    weights = {"four": np.array(4), "scalar": np.array([], np.int64)}
    made = model(nodes, [("x", [2])], [("y", []), ("z", [])], weights)
    made.graph.value_info.append(_scalar("last"))
    return made, {"x": np.array([0.25, 0.5], np.float32)}


def _constant(name: str, value: object) -> onnx.NodeProto:
    array = np.array(value, np.float32)
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


def _scalar(name: str, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [])


def contrib() -> Made:
    """Operators that onnx's inference does not know, inside and at the end."""
    nodes = [
        helper.make_node("FusedMatMul", ["x", "w"], ["a"], domain="com.microsoft", name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("FusedMatMul", ["b", "v"], ["y"], domain="com.microsoft", name="last"),
    ]
    weights = {"w": drawn(8, 16), "v": drawn(16, 4)}
    made = model(nodes, [("x", [2, 3, 8])], [("y", [6, 4])], weights, contrib=True)
    for name in ("a", "b"):
        made.graph.value_info.append(helper.make_tensor_value_info(name, FLOAT, [6, 16]))
    return made, {"x": drawn(2, 3, 8)}


def constant_output() -> Made:
    """An initializer as an output, of another rank than declared."""
    made = model(
        [helper.make_node("Relu", ["x"], ["y"], name="relu")],
        [("x", [2])],
        [("y", [2]), ("k", [6])],
    )
    made.graph.initializer.append(numpy_helper.from_array(drawn(2, 3), "k"))
    return made, {"x": drawn(2)}


def input_output() -> Made:
    """An input as an output, of another rank than the input."""
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    return model(nodes, [("x", [2, 3])], [("y", [2, 3]), ("x", [6])]), {"x": drawn(2, 3)}


WRONG: dict[str, Callable[[], Made]] = {
    "lower_rank": lambda: chain([3, 4]),
    "higher_rank": lambda: chain([1, 2, 3, 4]),
    "scalar": lambda: chain([]),
    "size": lambda: chain([2, 3, 5]),
    "size_of_free_rows": lambda: chain([2, 3, 5], rows="n"),
    "rank_of_free_rows": lambda: chain([3, "m"], rows="n"),
    "one_for_free_rows": lambda: chain([1, 3, 4], rows="n"),
    "zero": lambda: chain([0, 3, 4]),
    "another_symbol": lambda: chain(["m", 3, 5], rows="n"),
    "inside_rank": lambda: chain([2, 3, 4], a=[6, 16]),
    "inside_size": lambda: chain([2, 3, 4], b=[2, 3, 15]),
    "inside_of_free_rows": lambda: chain(["n", 3, 4], rows="n", b=[7, 3, 16], c=[7, 3, 4]),
    "everywhere": lambda: chain([6, 4], a=[6, 16], b=[6, 16], c=[6, 4]),
    "inner_output": inner_output,
    "recurrent": recurrent,
    "branches": branches,
    "rounds": rounds,
    "widened": widened,
    "widened_without_branches": widened_without_branches,
    "contrib": contrib,
    "constant_output": constant_output,
    "input_output": input_output,
}
"""Name to a model and its feed."""

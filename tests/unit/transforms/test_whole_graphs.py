"""Constant folding, common subexpressions, and what nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import helper
from unit.transforms.transformed import CPU, agrees, floats, parsed, run

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

X = {"x": floats(2, 3)}


def graph(body: str, constants: str = "", outputs: str = "float[2, 3] z") -> bytes:
    return parsed(f"g (float[2, 3] x) => ({outputs}) <{constants}> {{ {body} }}")


def test_what_depends_on_constants_alone_is_computed_once() -> None:
    ran = agrees(graph("b = Exp(a) c = Neg(b) z = Add(x, c)", "float[3] a = {1, 2, 3}"), X)
    assert (ran.fired["ConstantFolding"], ran.left) == (2, ["Add"])


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("b = RandomNormalLike(a) c = Sub(b, b) z = Add(x, c)", "float[3] a = {1, 2, 3}"),
        (
            "b = DequantizeLinear(a, s) z = Add(x, b)",
            "int8[3] a = {1, 2, 3}, float s = {0.5}",
        ),
        (
            "s = ConstantOfShape(n) r = ReduceSum <keepdims = 0> (s) z = Add(x, r)",
            "int64[2] n = {300, 300}",
        ),
    ],
    ids=["random", "quantised", "much_larger_than_its_source"],
)
def test_what_is_not_to_be_folded_stays(body: str, constants: str) -> None:
    ran = agrees(graph(body, constants), X)
    assert ran.left[0] in ("RandomNormalLike", "DequantizeLinear", "ConstantOfShape")


def test_a_graph_output_stays_a_node() -> None:
    model = graph("b = Exp(a) z = Add(x, b)", "float[3] a = {1, 2, 3}", "float[2, 3] z, float[3] b")
    assert agrees(model, X).left == ["Exp", "Add"]


def test_the_size_of_a_folded_constant_can_be_bounded() -> None:
    options = ort.SessionOptions()
    key = "optimization.constant_folding_max_output_size_in_bytes"
    options.add_session_config_entry(key, "8")
    model = graph("b = Exp(a) z = Add(x, b)", "float[3] a = {1, 2, 3}")
    with ort.InferenceSession(model, options, providers=CPU) as session:
        assert "ConstantFolding" not in session.explain().transforms
    options.add_session_config_entry(key, "many")
    with pytest.raises(ort.InvalidArgument, match="expected a number of bytes"):
        ort.InferenceSession(model, options, providers=CPU)


def test_a_constant_that_cannot_be_computed_fails_only_where_it_is_used() -> None:
    text = """g (float[2, 3] x, bool c) => (float[2, 3] z)
        <int64[1] far = {7}, float[2] t = {1, 2}> {
        z = If(c) <then_branch = a () => (float[2, 3] p) { g = Gather(t, far) p = Add(x, g) },
                   else_branch = b () => (float[2, 3] q) { q = Neg(x) }>
    }"""
    model = parsed(text)
    feed = {**X, "c": np.array(0, np.bool_)}
    with ort.InferenceSession(model, providers=CPU) as session:
        np.testing.assert_array_equal(session.run(None, feed)[0], -X["x"])
        with pytest.raises(ort.RuntimeException, match="Gather"):
            session.run(None, {**feed, "c": np.array(1, np.bool_)})


def test_equal_nodes_of_equal_inputs_are_computed_once() -> None:
    ran = agrees(graph("a = Exp(x) b = Exp(x) c = Neg(a) d = Neg(b) z = Add(c, d)"), X, rtol=1e-6)
    assert (ran.fired["CommonSubexpressionElimination"], ran.left) == (2, ["Exp", "Neg", "Add"])


@pytest.mark.parametrize(
    "body",
    [
        "a = RandomUniformLike(x) b = RandomUniformLike(x) c = Sub(a, b) "
        "d = Mul(c, o) z = Add(x, d)",
        "a = Softmax <axis = 0> (x) b = Softmax <axis = 1> (x) z = Sub(a, b)",
        "a = Selu <alpha = 0.0> (x) b = Selu <alpha = -0.0> (x) z = Sub(a, b)",
    ],
    ids=["random", "other_attributes", "signs_of_zero"],
)
def test_nodes_that_may_differ_are_both_computed(body: str) -> None:
    ran = agrees(graph(body, "float o = {0.0}"), X)
    assert "CommonSubexpressionElimination" not in ran.fired


def test_a_twin_that_is_a_graph_output_stays() -> None:
    model = graph("z = Exp(x) w = Exp(x)", outputs="float[2, 3] z, float[2, 3] w")
    assert "CommonSubexpressionElimination" not in agrees(model, X).fired


def test_what_nobody_reads_goes() -> None:
    body = "dead = Exp(x) deader = Neg(dead) z, at = MaxPool <kernel_shape = [1, 1]> (i)"
    head = "g (float[2, 3] x, float[1, 1, 2, 2] i) => (float[1, 1, 2, 2] z) <float u = {1}>"
    model = parsed(f"{head} {{ {body} }}")
    ran = agrees(model, {**X, "i": floats(1, 1, 2, 2)})
    assert ran.left == ["MaxPool"]
    assert ran.fired == {
        "RemoveUnusedNodes": 2,
        "RemoveUnusedOutputs": 1,
        "RemoveUnusedInitializers": 1,
    }


def test_below_basic_nothing_is_transformed() -> None:
    model = graph("i = Identity(x) dead = Exp(i) z = Neg(i)")
    ran = run(model, X, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    assert (ran.fired, sorted(ran.left)) == ({}, ["Exp", "Identity", "Neg"])


def test_basic_leaves_the_fusions_of_extended() -> None:
    body = "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, a) z = Mul(m, h)"
    model = graph(body, "float r = {1.4142135}, float o = {1}, float h = {0.5}")
    assert run(model, X, level=ort.GraphOptimizationLevel.ORT_ENABLE_BASIC).fired == {}
    assert run(model, X).fired["GeluFusion"] == 1


@pytest.mark.parametrize("way", ["argument", "entry"])
def test_a_transformation_can_be_switched_off_by_name(way: str) -> None:
    model = graph("i = Identity(x) z = Neg(i)")
    options = ort.SessionOptions()
    if way == "entry":
        options.add_session_config_entry(
            "optimization.disable_specified_optimizers", "Other;EliminateIdentity"
        )
    names = ("EliminateIdentity",) if way == "argument" else None
    with ort.InferenceSession(model, options, providers=CPU, disabled_optimizers=names) as session:
        assert session.explain().transforms == {}


def test_a_long_graph_is_transformed_in_one_pass() -> None:
    """20,000 nodes; a rule that looked at all of them each time would not come back."""
    nodes = []
    for i in range(0, 20_000, 2):
        nodes.append(helper.make_node("Identity", [f"v{i}"], [f"v{i + 1}"]))
        nodes.append(helper.make_node("Neg", [f"v{i + 1}"], [f"v{i + 2}"]))
    info = helper.make_tensor_value_info
    made = helper.make_graph(nodes, "long", [info("v0", 1, [2])], [info("v20000", 1, [2])])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ran = run(model.SerializeToString(), {"v0": np.array([1, 2], np.float32)})
    assert ran.fired == {"EliminateIdentity": 10_000}
    np.testing.assert_array_equal(ran.outputs[0], np.array([1, 2], np.float32))


def test_the_same_model_gives_the_same_graph_each_time(tmp_path: Path) -> None:
    body = "b = Exp(a) c = Exp(a) i = Identity(x) p = Add(i, b) q = Add(x, c) z = Mul(p, q)"
    model = graph(body, "float[3] a = {1, 2, 3}, float[3] d = {1, 2, 3}")
    saved = []
    for i in range(2):
        options = ort.SessionOptions()
        options.optimized_model_filepath = f"{tmp_path}/{i}.onnx"
        ort.InferenceSession(model, options, providers=CPU).close()
        saved.append(
            onnx.load(options.optimized_model_filepath).SerializeToString(deterministic=True)
        )
    assert saved[0] == saved[1]

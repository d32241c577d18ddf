"""Ifs of a constant condition become the nodes of their branch; answers are onnxruntime's."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper
import pytest
from unit.transforms.transformed import Ran, agrees, expected, floats, parsed, run

NAME = "IfInlining"
X = {"x": floats(2, 3)}


def chosen(*, flag: int, body: str, constants: str = "") -> Ran:
    text = f"g (float[2, 3] x) => (float[2, 3] z) <bool c = {{{flag}}}{constants}> {{ {body} }}"
    return agrees(parsed(text), X)


PLAIN = (
    "y = If(c) <then_branch = t () => (float[2, 3] a) { b = Exp(x) a = Neg(b) }, "
    "else_branch = e () => (float[2, 3] a) { b = Abs(x) a = Sqrt(b) }> z = Tanh(y)"
)


@pytest.mark.parametrize(
    ("flag", "left"), [(1, ["Exp", "Neg", "Tanh"]), (0, ["Abs", "Sqrt", "Tanh"])]
)
def test_the_branch_that_every_run_selects_is_left(flag: int, left: list[str]) -> None:
    ran = chosen(flag=flag, body=PLAIN)
    assert (ran.fired[NAME], ran.left) == (1, left)


def test_a_name_that_another_scope_has_means_another_value() -> None:
    body = (
        "b = Exp(x) y = If(c) <then_branch = t () => (float[2, 3] a) "
        "{ q = Neg(x) a = Mul(q, b) }, else_branch = e () => (float[2, 3] a) { a = Abs(x) }> "
        "w = If(k) <then_branch = u () => (float[2, 3] a) { q = Exp(y) a = Sub(q, b) }, "
        "else_branch = f () => (float[2, 3] a) { a = Neg(y) }> z = Add(y, w)"
    )
    ran = chosen(flag=1, body=body, constants=", bool k = {1}")
    assert (ran.fired[NAME], "If" in ran.left) == (2, False)


@pytest.mark.parametrize(
    "outputs",
    ["{ a = Exp(x) }> z = Neg(y)", "{ a = Identity(x) }> z = Neg(y)"],
    ids=["made in the branch", "from outside"],
)
def test_a_result_may_come_from_anywhere(outputs: str) -> None:
    body = (
        "y = If(c) <else_branch = e () => (float[2, 3] a) { a = Abs(x) }, "
        f"then_branch = t () => (float[2, 3] a) {outputs}"
    )
    assert "If" not in chosen(flag=1, body=body).left


def test_one_value_may_be_several_results() -> None:
    """Results of the graph itself, one of them an initializer of the branch."""
    text = """g (float[2, 3] x) => (float[2, 3] z, float[2, 3] w, float[2] v) <bool c = {1}> {
        z, w, v = If(c) <
            then_branch = t () => (float[2, 3] a, float[2, 3] a, float[2] k)
                <float[2] k = {4, 5}> { a = Exp(x) },
            else_branch = e () => (float[2, 3] p, float[2, 3] q, float[2] r)
                <float[2] r = {6, 7}> { p = Neg(x) q = Abs(x) }>
    }"""
    ran = run(parsed(text), X)
    assert "If" not in ran.left
    np.testing.assert_allclose(ran.outputs[0], np.exp(X["x"]), rtol=1e-6)
    np.testing.assert_allclose(ran.outputs[1], np.exp(X["x"]), rtol=1e-6)
    assert ran.outputs[2].tolist() == [4, 5]


def test_branches_come_out_one_after_the_other() -> None:
    """The rank of `y`, which settles the second condition, is known once the first is settled."""
    text = """g (float[2, 1, 3] x) => (float[6] z) <bool c = {1}, int64[1] one = {1},
        int64[1] all = {-1}, int64 three = {3}> {
        y = If(c) <then_branch = t () => (float[2, 3] a) { a = Squeeze(x, one) },
                   else_branch = e () => (float[2, 1, 3] b) { b = Identity(x) }>
        s = Shape(y)
        r = Size(s)
        k = Equal(r, three)
        w = If(k) <then_branch = u () => (float[2, 1, 3] p) { p = Neg(y) },
                   else_branch = f () => (float[2, 3] q) { q = Exp(y) }>
        z = Reshape(w, all)
    }"""
    ran = agrees(parsed(text), {"x": floats(2, 1, 3)})
    assert (ran.fired[NAME], "If" in ran.left, "Exp" in ran.left) == (2, False, True)


def test_a_loop_in_a_branch_keeps_what_it_captures() -> None:
    text = """g (float[2, 3] x) => (float[2, 3] z) <bool c = {1}, int64 n = {3}, bool on = {1}> {
        z = If(c) <
            then_branch = t () => (float[2, 3] r) {
                k = Abs(x)
                r = Loop(n, on, x) <body = l (int64 i, bool p, float[2, 3] s)
                    => (bool o, float[2, 3] u) { o = Identity(p) u = Add(s, k) }>
            },
            else_branch = e () => (float[2, 3] k) { k = Neg(x) }>
    }"""
    ran = agrees(parsed(text), X)
    assert (ran.fired[NAME], "Loop" in ran.left, "If" in ran.left) == (1, True, False)


def test_an_if_in_a_body_is_replaced() -> None:
    text = """g (float[2, 3] x) => (float[2, 3] z) <bool c = {0}, int64 n = {2}, bool on = {1}> {
        z = Loop(n, on, x) <body = l (int64 i, bool p, float[2, 3] s) => (bool o, float[2, 3] u) {
            o = Identity(p)
            u = If(c) <then_branch = t () => (float[2, 3] a) { a = Exp(s) },
                       else_branch = e () => (float[2, 3] b) { b = Add(s, x) }>
        }>
    }"""
    ran = agrees(parsed(text), X)
    assert (ran.fired[NAME], "If" in ran.left) == (1, False)


@pytest.mark.parametrize(
    "condition",
    ["bool[1] k = {1}", "bool[2] k = {1, 0}"],
    ids=["one element", "two elements"],
)
def test_a_condition_has_one_element(condition: str) -> None:
    text = f"""g (float[2, 3] x) => (float[2, 3] z) <{condition}> {{
        z = If(k) <then_branch = t () => (float[2, 3] a) {{ a = Exp(x) }},
                   else_branch = e () => (float[2, 3] b) {{ b = Neg(x) }}>
    }}"""
    model = parsed(text)
    if "[1]" in condition:
        assert "If" not in agrees(model, X).left
        return
    with pytest.raises(Exception, match="exactly one element"):
        run(model, X)


def test_a_condition_that_a_caller_may_override_is_not_a_constant() -> None:
    text = """g (float[2, 3] x, bool c) => (float[2, 3] z) <bool c = {1}> {
        z = If(c) <then_branch = t () => (float[2, 3] a) { a = Exp(x) },
                   else_branch = e () => (float[2, 3] b) { b = Neg(x) }>
    }"""
    model = parsed(text)
    ran = run(model, {**X, "c": np.array(0, np.bool_)})
    np.testing.assert_array_equal(ran.outputs[0], -X["x"])
    assert NAME not in ran.fired


def test_it_can_be_switched_off() -> None:
    model = parsed(f"g (float[2, 3] x) => (float[2, 3] z) <bool c = {{1}}> {{ {PLAIN} }}")
    ran = run(model, X, disabled=(NAME,))
    assert (NAME in ran.fired, "If" in ran.left) == (False, True)
    np.testing.assert_allclose(ran.outputs[0], expected(model, X)[0], rtol=1e-6)


def test_a_body_that_hides_a_result_keeps_the_if() -> None:
    """Scopes may use one name for several values, as long as each finds its own first."""
    value = onnx.helper.make_tensor_value_info
    shape = (onnx.TensorProto.FLOAT, [2, 3])
    node = onnx.helper.make_node
    inner = onnx.helper.make_graph(
        [node("Exp", ["x"], ["y"]), node("Add", ["y", "a"], ["i"])], "i", [], [value("i", *shape)]
    )
    other = onnx.helper.make_graph([node("Abs", ["x"], ["j"])], "j", [], [value("j", *shape)])
    then = onnx.helper.make_graph(
        [
            node("Neg", ["x"], ["a"]),
            node("If", ["d"], ["b"], then_branch=inner, else_branch=other),
            node("Sub", ["a", "b"], ["r"]),
        ],
        "t",
        [],
        [value("r", *shape)],
    )
    graph = onnx.helper.make_graph(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other), node("Abs", ["y"], ["z"])],
        "g",
        [value("x", *shape), value("d", onnx.TensorProto.BOOL, [])],
        [value("z", *shape)],
        [onnx.helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True])],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    ran = run(model, {**X, "d": np.array(1, np.bool_)})
    np.testing.assert_allclose(ran.outputs[0], np.exp(X["x"]), rtol=1e-5)
    assert (NAME in ran.fired, "If" in ran.left) == (False, True)

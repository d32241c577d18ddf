"""Rules that take nodes out: where they do, and where they must not."""

from __future__ import annotations

import numpy as np
import pytest
from unit.transforms.transformed import agrees, floats, parsed

X = {"x": floats(2, 3)}

FIRE = {
    "identity": ("EliminateIdentity", "y = Identity(x) z = Relu(y)"),
    "identity_chain": ("EliminateIdentity", "a = Identity(x) y = Identity(a) z = Relu(y)"),
    "one_input": ("EliminateSingleInput", "y = Concat <axis = 0> (x) z = Relu(y)"),
    "times_one": (
        "NoopElimination",
        "o = Constant <value_float = 1.0> () y = Mul(o, x) z = Abs(y)",
    ),
    "over_one": ("NoopElimination", "o = Constant <value_float = 1.0> () y = Div(x, o) z = Abs(y)"),
    "minus_zero": (
        "NoopElimination",
        "o = Constant <value_float = 0.0> () y = Sub(x, o) z = Abs(y)",
    ),
    "plus_zero": (
        "NoopElimination",
        "o = Constant <value_float = 0.0> () y = Add(x, o) z = Abs(y)",
    ),
    "unsqueeze_and_squeeze": (
        "SqueezeElimination",
        "o = Constant <value_ints = [0, 2]> () t = Constant <value_ints = [2, 0]> () "
        "y = Unsqueeze(x, o) q = Squeeze(y, t) z = Relu(q)",
    ),
    "squeeze_from_the_end": (
        "SqueezeElimination",
        "o = Constant <value_ints = [1]> () t = Constant <value_ints = [-2]> () "
        "y = Unsqueeze(x, o) q = Squeeze(y, t) z = Relu(q)",
    ),
    "unsqueeze_and_squeeze_to_an_output": (
        "SqueezeElimination",
        "o = Constant <value_ints = [0]> () a = Relu(x) y = Unsqueeze(a, o) z = Squeeze(y, o)",
    ),
    "cast_to_its_type": ("CastElimination", "y = Cast <to = 1> (x) z = Relu(y)"),
    "cast_there_and_back": (
        "CastElimination",
        "d = Cast <to = 11> (x) y = Cast <to = 1> (d) z = Relu(y)",
    ),
    "transpose_in_place": ("TransposeOptimizer", "y = Transpose <perm = [0, 1]> (x) z = Abs(y)"),
    "two_transposes": (
        "TransposeOptimizer",
        "a = Transpose <perm = [1, 0]> (x) y = Transpose <perm = [1, 0]> (a) z = Abs(y)",
    ),
    "slice_of_all": (
        "EliminateSlice",
        "s = Constant <value_ints = [0]> () e = Constant <value_ints = [9223372036854775807]> () "
        "y = Slice(x, s, e) z = Relu(y)",
    ),
    "pad_by_nothing": (
        "PadElimination",
        "p = Constant <value_ints = [0, 0, 0, 0]> () y = Pad(x, p) z = Relu(y)",
    ),
    "expand_to_ones": (
        "ExpandElimination",
        "s = Constant <value_ints = [1, 1]> () y = Expand(x, s) z = Relu(y)",
    ),
    "shape_of_an_input": (
        "ShapeToInitializer",
        "s = Shape(x) f = Cast <to = 1> (s) r = ReduceSum <keepdims = 0> (f) z = Add(x, r)",
    ),
    "shape_of_a_value_inside": (
        "ShapeToInitializer",
        "b = Relu(x) s = Shape(b) f = Cast <to = 1> (s) r = ReduceSum <keepdims = 0> (f) "
        "z = Add(x, r)",
    ),
}

STAY = {
    "identity_is_an_output": ("EliminateIdentity", "z = Identity(x)"),
    "identity_of_an_output": ("EliminateIdentity", "y = Relu(x) z = Identity(y)"),
    "two_inputs": ("EliminateSingleInput", "y = Sum(x, x) z = Relu(y)"),
    "squeeze_of_another_axis": (
        "SqueezeElimination",
        "o = Constant <value_ints = [0]> () t = Constant <value_ints = [1]> () "
        "s = Slice(x, o, t, o) y = Unsqueeze(s, t) q = Squeeze(y, o) z = Relu(q)",
    ),
    "squeeze_of_computed_axes": (
        "SqueezeElimination",
        "t = Constant <value_ints = [1]> () k = Constant <value_float = 1.0> () "
        "e = ReduceMax <keepdims = 0> (x) p = Mul(e, e) n = Div(p, p) m = Cast <to = 7> (n) "
        "r = Reshape(m, t) y = Unsqueeze(x, t) q = Squeeze(y, r) z = Relu(q)",
    ),
    "one_with_more_dimensions": (
        "NoopElimination",
        "o = Constant <value = float[1, 1, 1] {1}> () y = Mul(x, o) a = Abs(y) "
        "s = Constant <value_ints = [2, 3]> () z = Reshape(a, s)",
    ),
    "one_over_x": (
        "NoopElimination",
        "o = Constant <value_float = 1.0> () y = Div(o, x) z = Abs(y)",
    ),
    "a_neutral_row": (
        "NoopElimination",
        "o = Constant <value = float[3] {1, 1, 2}> () y = Mul(x, o) z = Abs(y)",
    ),
    "cast_that_loses": (
        "CastElimination",
        "d = Cast <to = 10> (x) y = Cast <to = 1> (d) z = Relu(y)",
    ),
    "transpose": (
        "TransposeOptimizer",
        "y = Transpose <perm = [1, 0]> (x) a = Abs(y) "
        "s = Constant <value_ints = [2, 3]> () z = Reshape(a, s)",
    ),
    "slice_with_steps": (
        "EliminateSlice",
        "s = Constant <value_ints = [-1]> () e = Constant <value_ints = [-9223372036854775807]> () "
        "a = Constant <value_ints = [0]> () t = Constant <value_ints = [-1]> () "
        "y = Slice(x, s, e, a, t) z = Relu(y)",
    ),
    "slice_to_a_size": (
        "EliminateSlice",
        "s = Constant <value_ints = [0]> () e = Constant <value_ints = [1]> () "
        "y = Slice(x, s, e) b = Relu(y) z = Add(b, x)",
    ),
    "pad": (
        "PadElimination",
        "p = Constant <value_ints = [0, -1, 0, 1]> () y = Pad(x, p) z = Relu(y)",
    ),
    "expand_to_more_dimensions": (
        "ExpandElimination",
        "s = Constant <value_ints = [1, 1, 1]> () y = Expand(x, s) b = Abs(y) "
        "t = Constant <value_ints = [2, 3]> () z = Reshape(b, t)",
    ),
}


@pytest.mark.parametrize("case", FIRE)
def test_a_node_that_passes_its_input_on_goes(case: str) -> None:
    name, body = FIRE[case]
    ran = agrees(parsed(f"g (float[2, 3] x) => (float[2, 3] z) {{ {body} }}"), X, rtol=0)
    assert name in ran.fired


@pytest.mark.parametrize("case", STAY)
def test_a_node_that_does_something_stays(case: str) -> None:
    name, body = STAY[case]
    ran = agrees(parsed(f"g (float[2, 3] x) => (float[2, 3] z) {{ {body} }}"), X, rtol=0)
    assert name not in ran.fired


def test_a_value_that_a_body_captures_keeps_its_maker() -> None:
    text = """g (float[2, 3] x, bool c) => (float[2, 3] z) {
        y = Identity(x)
        z = If(c) <then_branch = t () => (float[2, 3] a) { a = Relu(y) },
                   else_branch = e () => (float[2, 3] b) { b = Neg(y) }>
    }"""
    for condition in (True, False):
        ran = agrees(parsed(text), {**X, "c": np.array(condition)}, rtol=0)
        assert "EliminateIdentity" not in ran.fired


def test_bodies_are_transformed_too() -> None:
    text = """g (float[2, 3] x, bool c) => (float[2, 3] z) {
        z = If(c) <then_branch = t () => (float[2, 3] a) { i = Identity(x) a = Relu(i) },
                   else_branch = e () => (float[2, 3] b) { b = Neg(x) }>
    }"""
    ran = agrees(parsed(text), {**X, "c": np.array(1, np.bool_)}, rtol=0)
    assert ran.fired["EliminateIdentity"] == 1


def test_the_shape_of_an_input_with_a_free_dimension_is_asked_at_run_time() -> None:
    text = """g (float[n, 3] x) => (float[n, 3] z) {
        s = Shape(x) f = Cast <to = 1> (s) r = ReduceSum <keepdims = 0> (f) z = Add(x, r)
    }"""
    for rows in (1, 4):
        ran = agrees(parsed(text), {"x": floats(rows, 3)}, rtol=0)
        assert "ShapeToInitializer" not in ran.fired


def test_a_dropout_that_trains_stays() -> None:
    text = """g (float[2, 3] x) => (float[2, 3] z)
        <float r = {0.0}, bool t = {1}> { y = Dropout(x, r, t) z = Relu(y) }"""
    ran = agrees(parsed(text), X, rtol=0)
    assert ran.left == ["Dropout", "Relu"]


def test_an_initializer_that_a_caller_may_override_is_no_constant() -> None:
    text = """g (float[2, 3] x, float o) => (float[2, 3] z)
        <float o = {1.0}> { y = Mul(x, o) z = Abs(y) }"""
    ran = agrees(parsed(text), {**X, "o": np.array(3, np.float32)}, rtol=0)
    assert ran.fired == {}

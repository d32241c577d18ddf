"""Products that a Loop repeats are computed before it; answers are onnxruntime's."""

from __future__ import annotations

import numpy as np
import pytest
from unit.transforms.transformed import Ran, agrees, floats, parsed

NAME = "LoopInvariantMotion"
WEIGHTS = ", ".join(str((7 * n) % 5 - 2) for n in range(16))
CONSTANTS = (
    "int64 three = {3}, int64 none = {0}, bool yes = {1}, bool no = {0}, float half = {0.5}, "
    "float[4, 4] w = {WEIGHTS}, float[4] bias = {1, 2, 3, 4}"
).replace("WEIGHTS", WEIGHTS)
KEYS = """
    rows = Shape <end = 1> (memory) k = MatMul(memory, w) kb = Add(k, bias)
    keys = Transpose <perm = [1, 0]> (kb)"""
STEP = """
    scores = MatMul(t, keys) weights = Softmax <axis = 1> (scores) mixed = MatMul(weights, kb)
    f = Cast <to = 1> (rows) small = Div(mixed, f) u = Add(t, small) go = Identity(on)"""
"""Attention to keys of a memory that no iteration changes."""
FEED = {"memory": floats(5, 4), "x": floats(1, 4), "late": np.array(2, np.int64)}


def decoder(
    body: str = KEYS + STEP, trips: str = "three", on: str = "yes", rest: str = "", more: str = ""
) -> bytes:
    return parsed(f"""g (float[r, 4] memory, float[1, 4] x, int64 late) => (float[1, 4] y)
        <{CONSTANTS}> {{ {rest}
        s = Loop({trips}, {on}, x) <body = step (int64 i, bool on, float[1, 4] t)
            => (bool go, float[1, 4] u) <float[4] ones = {{1, 1, 1, 1}}> {{ {body} }}>
        {more or "y = Neg(s)"} }}""")


def moved(ran: Ran) -> tuple[int, int]:
    """Nodes that were moved, and how many products are left in all."""
    return ran.fired.get(NAME, 0), ran.left.count("MatMul")


def test_keys_of_a_memory_are_computed_before_the_loop() -> None:
    """The number of rows stays in the body: it is no product."""
    ran = agrees(decoder(), FEED)
    assert ran.fired[NAME] == 3
    before = ran.left[: ran.left.index("Loop")]
    assert before == ["MatMul", "Add", "Transpose"]
    assert ran.left.count("Shape") == 1


def test_a_size_that_products_and_others_need_is_computed_twice() -> None:
    body = KEYS.replace("MatMul(memory", "MatMul(wide") + STEP
    body = body.replace("k = ", "n = Cast <to = 1> (rows) wide = Mul(memory, n) k = ")
    ran = agrees(decoder(body), FEED)
    assert ran.fired[NAME] == 6
    assert (ran.left.count("Shape"), ran.left.count("Mul")) == (2, 1)


def test_a_loop_without_limits_of_trips_or_condition_runs_at_least_once() -> None:
    ends = STEP.replace("Identity(on)", "Less(i, late)")
    assert moved(agrees(decoder(KEYS + ends, trips=""), FEED))[0] == 3
    assert moved(agrees(decoder(on=""), FEED))[0] == 3


def test_two_loops_of_the_same_names_and_constants_of_bodies() -> None:
    """A bias that is an initializer of both bodies, and a body inside that reads moved values."""
    body = (KEYS + STEP).replace("Add(k, bias)", "Add(k, ones)")
    body = body.replace(
        "small = Div(mixed, f)",
        """small = If(on) <then_branch = a () => (float[1, 4] p) { q = ReduceSum <keepdims = 0> (kb)
            p = Div(mixed, q) }, else_branch = b () => (float[1, 4] o) { o = Div(mixed, f) }>""",
    )
    second = f"""v = Loop(three, yes, s) <body = step (int64 i, bool on, float[1, 4] t)
        => (bool go, float[1, 4] u) <float[4] ones = {{2, 2, 2, 2}}> {{ {body} }}> y = Add(s, v)"""
    assert moved(agrees(decoder(body, more=second), FEED, 1e-5))[0] == 6


@pytest.mark.parametrize(
    "model",
    [
        decoder(trips="late"),
        decoder(trips="none"),
        decoder(on="no"),
        decoder(on="c", rest="c = Greater(late, none)"),
        decoder(KEYS.replace("(memory, w)", "(m2, w)").replace("k = ", "m2 = Add(memory, t) k = ")
                + STEP),
        decoder(KEYS.replace("(memory, w)", "(m2, w)")
                .replace("k = ", "a = RandomUniformLike <low = 0.0, high = 0.0> (memory) "
                         "m2 = Add(memory, a) k = ") + STEP),
        decoder(KEYS.replace("(memory, w)", "(m2, w)").replace("k = ",
                """m2 = If(c) <then_branch = a () => (float[r, 4] p) { p = Add(memory, t) },
                else_branch = b () => (float[r, 4] o) { o = Sub(memory, t) }> k = """) + STEP,
                rest="c = Greater(late, none)"),
        decoder("u = MatMul(x, w) go = Identity(on)"),
        decoder("""u = If(on) <then_branch = a () => (float[1, 4] p) { p = MatMul(x, w) },
            else_branch = b () => (float[1, 4] o) { o = Neg(t) }> go = Identity(on)"""),
        decoder("e = Exp(memory) m = ReduceMax <keepdims = 0> (e) u = Mul(t, m) go = Identity(on)"),
    ],
    ids=["trips of an input", "no trips", "never", "a condition of an input", "a state",
         "random", "a state in a branch", "a result of the body", "in a branch", "no product"],
)  # fmt: skip
def test_what_changes_may_not_run_or_is_no_product_stays(model: bytes) -> None:
    ran = agrees(model, FEED)
    assert NAME not in ran.fired

"""Sizes that are picked from a Shape become numbers where they are known."""

from __future__ import annotations

import numpy as np
import pytest
from unit.transforms.transformed import agrees, floats, parsed, run

RULE = "SizesToInitializer"
X = {"x": floats(2, 3, 5)}


def picking(pick: str, constants: str, *, shape: str = "Shape(x)", declared: str = "") -> str:
    """A model that adds what it picks from sizes of x [n, 3, 5] to all elements of x."""
    return (
        f"g (float[n, 3, 5] x) => (float[n, 3, 5] y) <{constants}{declared}>"
        f"{{ s = {shape} p = {pick} f = Cast <to = 1> (p) t = ReduceSum <keepdims = 0> (f) "
        "y = Add(x, t) }"
    )


@pytest.mark.parametrize(
    ("pick", "constants"),
    [
        ("Gather(s, i)", "int64 i = {1}"),
        ("Gather(s, i)", "int64 i = {-1}"),
        ("Gather <axis = -1> (s, i)", "int64[2] i = {2, 1}"),
        ("Gather(s, i)", "int32[1, 2] i = {1, -2}"),
        ("Slice(s, a, b)", "int64[1] a = {1}, int64[1] b = {3}"),
        ("Slice(s, a, b)", "int64[1] a = {-2}, int64[1] b = {9223372036854775807}"),
        ("Slice(s, a, b, z)", "int64[1] a = {1}, int64[1] b = {2}, int64[1] z = {0}"),
        (
            "Slice(s, a, b, z, d)",
            "int32[1] a = {1}, int32[1] b = {9}, int32[1] z = {-1}, int32[1] d = {2}",
        ),
        ("Slice(s, a, b, , d)", "int64[1] a = {1}, int64[1] b = {3}, int64[1] d = {1}"),
    ],
)
def test_sizes_that_are_known_are_picked(pick: str, constants: str) -> None:
    ran = agrees(parsed(picking(pick, constants)), X)
    assert ran.fired[RULE] == 1
    assert "Shape" not in ran.left


def test_the_range_of_a_shape_counts() -> None:
    text = picking("Gather(s, i)", "int64 i = {0}", shape="Shape <start = -2, end = 3> (x)")
    assert agrees(parsed(text), X).fired[RULE] == 1


@pytest.mark.parametrize(
    ("pick", "constants"),
    [
        ("Gather(s, i)", "int64 i = {0}"),
        ("Gather(s, i)", "int64[2] i = {1, 0}"),
        ("Slice(s, a, b)", "int64[1] a = {0}, int64[1] b = {2}"),
        (
            "Slice(s, a, b, z, d)",
            "int64[1] a = {2}, int64[1] b = {0}, int64[1] z = {0}, int64[1] d = {-1}",
        ),
    ],
    ids=["free", "one of them", "slice", "backwards"],
)
def test_others_stay(pick: str, constants: str) -> None:
    ran = agrees(parsed(picking(pick, constants)), X)
    assert RULE not in ran.fired


def test_computed_places_stay() -> None:
    text = "g (float[n, 3, 5] x, int64 i) => (int64 p) { s = Shape(x) p = Gather(s, i) }"
    ran = agrees(parsed(text), {**X, "i": np.array(1)})
    assert RULE not in ran.fired


def test_an_output_of_the_model_stays() -> None:
    text = "g (float[n, 3, 5] x) => (int64 p) <int64 i = {1}> { s = Shape(x) p = Gather(s, i) }"
    assert RULE not in agrees(parsed(text), X).fired


def test_what_the_file_declares_does_not_count() -> None:
    """It says 4 where there are 3 or 5 elements."""
    text = (
        "g (float[n] x) => (float[m] y) <int64 i = {1}, float[a, 4] k>"
        "{ c = Relu(x) z = NonZero(c) k = Cast <to = 1> (z) s = Shape(k) p = Gather(s, i) "
        "f = Cast <to = 1> (p) y = Add(x, f) }"
    )
    for count in (3, 5):
        ran = run(parsed(text), {"x": np.ones(count, np.float32)})
        assert RULE not in ran.fired
        np.testing.assert_array_equal(ran.outputs[0], np.full(count, count + 1, np.float32))


def test_sizes_inside_a_branch() -> None:
    text = (
        "g (float[n, 3, 5] x, bool c) => (float y) { y = If(c) <"
        "then_branch = t () => (float a) <int64 i = {1}> "
        "{ s = Shape(x) p = Gather(s, i) a = Cast <to = 1> (p) }, "
        "else_branch = e () => (float b) { b = ReduceSum <keepdims = 0> (x) }> }"
    )
    for flag in (True, False):
        ran = agrees(parsed(text), {**X, "c": np.array(flag)}, 1e-5)
        assert ran.fired[RULE] == 1

"""Reshapes to sizes of their inputs get constants with zeros; answers are onnxruntime's."""

from __future__ import annotations

import numpy as np
import pytest
from unit.transforms.transformed import Ran, agrees, floats, parsed, run

import ort_lite as ort

NAME = "ReshapeFusion"
CONSTANTS = """int64[1] v0 = {0}, int64[1] v1 = {1}, int64[1] v2 = {2}, int64[1] four = {4},
    int64[1] last = {-1}, float[8, 8] w = {WEIGHTS}, float[8] bias = {1, 2, 3, 4, 5, 6, 7, 8},
    float[9, 8] table = {TABLE}, int64[1] eight = {8}""".replace(
    "WEIGHTS", ", ".join(str(n % 5 - 2) for n in range(64))
).replace("TABLE", ", ".join(str(n % 7) for n in range(72)))
SIZES = "s = Shape(x) n = Gather(s, v0) l = Gather(s, v1) "
X = {"x": floats(2, 3, 8)}


def reshaped(body: str, *, inputs: str = "float[n, s, 8] x") -> bytes:
    return parsed(f"g ({inputs}) => (y) <{CONSTANTS}> {{ {body} }}")


def counts(ran: Ran) -> tuple[int, bool]:
    return ran.fired.get(NAME, 0), "Shape" in ran.left


@pytest.mark.parametrize(
    "source",
    [
        "r = Relu(x)",
        "m = MatMul(x, w) r = Add(bias, m)",
        "t = Transpose <perm = [2, 0, 1]> (x) r = Transpose <perm = [1, 2, 0]> (t)",
        "m = LayerNormalization(x, bias) r = Softmax(m)",
        "a, b = Split <axis = 2> (x) r = Concat <axis = 2> (b, a)",
    ],
    ids=["activation", "projection", "permutations", "normalisation", "joined halves"],
)
def test_a_view_by_heads_keeps_batch_and_length(source: str) -> None:
    body = f"{source} {SIZES} f = Concat <axis = 0> (n, l, four, last) y = Reshape(r, f)"
    expected = (0, True) if "Concat" in source else (1, False)
    for shape in ((2, 3, 8), (1, 1, 8), (3, 7, 8)):
        ran = agrees(reshaped(body), {"x": floats(*shape)}, 1e-5)
        assert counts(ran) == expected
        assert ran.outputs[0].shape == (*shape[:2], 4, 2)


def test_rows_that_are_looked_up_have_the_shape_of_the_indices() -> None:
    body = (
        f"r = Gather(table, x) {SIZES} f = Concat <axis = 0> (n, l, four, last) y = Reshape(r, f)"
    )
    feed = {"x": np.array([[1, 8, 0], [3, 3, 2]])}
    ran = agrees(reshaped(body, inputs="int64[n, s] x"), feed)
    assert counts(ran) == (1, False)


def test_heads_are_joined_again() -> None:
    """The sizes come from before the first Reshape, and go back to their places."""
    body = f"""{SIZES} f = Concat <axis = 0> (n, l, four, last) r = Reshape(x, f)
        h = Transpose <perm = [0, 2, 1, 3]> (r) e = Exp(h) t = Transpose <perm = [0, 2, 1, 3]> (e)
        g = Concat <axis = 0> (n, l, eight) y = Reshape(t, g)"""
    assert counts(agrees(reshaped(body), X)) == (2, False)


@pytest.mark.parametrize(
    "body",
    [
        "f = Concat <axis = 0> (l, n, eight) y = Reshape(x, f)",
        "f = Concat <axis = 0> (n, four, l, last) y = Reshape(x, f)",
        "d = Mul(l, v2) f = Concat <axis = 0> (n, d, last) y = Reshape(x, f)",
        "f = Concat <axis = 0> (l, eight, n) y = Reshape(x, f)",
    ],
    ids=["exchanged", "moved", "doubled", "turned"],
)
def test_sizes_at_other_places_stay(body: str) -> None:
    for shape in ((2, 3, 8), (4, 4, 8)):
        ran = agrees(reshaped(SIZES + body), {"x": floats(*shape)})
        assert counts(ran) == (0, True)


def test_a_zero_that_means_no_elements_stays() -> None:
    body = SIZES + "f = Concat <axis = 0> (n, l, four, v2) y = Reshape <allowzero = 1> (x, f)"
    assert counts(agrees(reshaped(body), X)) == (0, True)


def test_sizes_of_another_input_stay_whatever_its_dimensions_are_called() -> None:
    body = SIZES + "f = Concat <axis = 0> (n, l, four, last) y = Reshape(z, f)"
    model = reshaped(body, inputs="float[n, s, 8] x, float[n, s, 8] z")
    ran = agrees(model, {"x": floats(2, 3, 8), "z": floats(3, 2, 8)})
    assert counts(ran) == (0, True)
    assert ran.outputs[0].shape == (2, 3, 4, 2)


def test_a_batch_of_nothing() -> None:
    body = SIZES + "f = Concat <axis = 0> (n, l, four, v2) y = Reshape(x, f)"
    ran = agrees(reshaped(body), {"x": floats(0, 3, 8)})
    assert counts(ran) == (1, False)
    assert ran.outputs[0].shape == (0, 3, 4, 2)


def test_it_can_be_disabled() -> None:
    body = SIZES + "f = Concat <axis = 0> (n, l, four, last) y = Reshape(x, f)"
    ran = run(reshaped(body), X, disabled=(NAME,))
    assert counts(ran) == (0, True)


def test_a_name_that_the_model_has_is_not_taken() -> None:
    body = f"""{SIZES} f = Concat <axis = 0> (n, l, four, last) r = Reshape(x, f)
        reshape_to_0_0_4_m1 = Exp(r) y = Neg(reshape_to_0_0_4_m1)"""
    assert counts(agrees(reshaped(body), X)) == (1, False)


def test_a_size_that_is_known_counts_as_its_number() -> None:
    """As GPT-2's projections are written: view(-1, x.size(-1)), and back."""
    body = f"""{SIZES} d = Gather(s, v2) f = Concat <axis = 0> (last, d) r = Reshape(x, f)
        m = MatMul(r, w) g = Concat <axis = 0> (n, l, eight) y = Reshape(m, g)"""
    ran = agrees(reshaped(body), X, 1e-5)
    assert ran.fired.get(NAME, 0) == 1
    assert ran.outputs[0].shape == (2, 3, 8)


def test_shapes_of_ten_thousand_sizes_are_not_looked_at_one_by_one() -> None:
    """For each size the whole list would be read, for minutes; no value has such a rank."""
    sizes = ", ".join(["n"] * 10_000)
    body = f"{SIZES} f = Concat <axis = 0> ({sizes}) r = Reshape(x, f) e = Exp(r) y = Reshape(e, f)"
    with ort.InferenceSession(reshaped(body), providers=["CPUExecutionProvider"]) as session:
        assert NAME not in session.explain().transforms

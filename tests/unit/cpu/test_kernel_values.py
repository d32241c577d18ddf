"""What neither the ONNX suite nor onnxruntime shows: old forms, edges, random numbers."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from unit.cpu.single_node import run_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("b", "axis", "shape"),
    [((3, 4), None, (3, 4)), ((3,), 1, (3, 1)), ((2, 3), 0, (2, 3, 1)), ((4,), -1, (4,))],
)
def test_before_opset_7_an_operand_is_laid_along_an_axis(
    b: tuple[int, ...], axis: int | None, shape: tuple[int, ...]
) -> None:
    """ONNX Add-6: `broadcast` and `axis`; without an axis the shapes end alike."""
    other = np.arange(math.prod(b), dtype=np.float32).reshape(b)
    options = {} if axis is None else {"axis": axis}
    result = run_node("Add", X, other, opset=6, broadcast=1, **options)
    np.testing.assert_array_equal(result, X + other.reshape(shape))


def test_before_opset_7_prelu_has_a_slope_for_each_channel() -> None:
    slope = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(run_node("PRelu", -X, slope, opset=6), -X * slope[:, None])


def test_the_first_forms_of_reshape_tile_pad_and_upsample() -> None:
    assert run_node("Reshape", X, opset=1, shape=[4, 6]).shape == (4, 6)
    tiled = run_node("Tile", X, np.array([2]), np.array([1]), opset=1)
    np.testing.assert_array_equal(tiled, np.tile(X, (1, 2, 1)))
    padded = run_node("Pad", X[0], opset=1, paddings=[1, 0, 0, 2], value=7.0)
    np.testing.assert_array_equal(padded, np.pad(X[0], ((1, 0), (0, 2)), constant_values=7))
    twice = run_node("Upsample", X[None], opset=1, height_scale=2.0, width_scale=1.0)
    np.testing.assert_array_equal(twice, X[None].repeat(2, 2))
    assert run_node("Cast", X, opset=1, to="INT32").dtype == np.int32


def test_batch_normalization_6_trains_where_it_has_further_outputs() -> None:
    """Statistics are of the batch, running ones are moved by momentum."""
    scale, bias, mean, var = (np.full(3, v, np.float32) for v in (2, 1, 0, 1))
    y, running_mean, running_var, batch_mean, batch_var = run_node(
        "BatchNormalization", X, scale, bias, mean, var, opset=6, outputs=5, momentum=0.75
    )
    expected_mean, expected_var = X.mean((0, 2)), X.var((0, 2))
    normal = (X - expected_mean[:, None]) / np.sqrt(expected_var[:, None] + 1e-5)
    np.testing.assert_allclose(y, normal * 2 + 1, rtol=1e-5)
    np.testing.assert_allclose(batch_mean, expected_mean, rtol=1e-6)
    np.testing.assert_allclose(batch_var, expected_var, rtol=1e-5)
    np.testing.assert_allclose(running_mean, expected_mean / 4, rtol=1e-6)
    np.testing.assert_allclose(running_var, 0.75 + expected_var / 4, rtol=1e-5)


def test_batch_normalization_without_space_has_a_statistic_for_each_activation() -> None:
    mean = X[0]
    ones, zeros = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    y = run_node("BatchNormalization", X, ones, zeros, mean, ones, opset=7, spatial=0, epsilon=0.0)
    np.testing.assert_array_equal(y, X - mean)


def test_integers_are_divided_toward_zero_and_by_zero_to_zero() -> None:
    a, b = np.array([7, -7, 7, -7, 5]), np.array([2, 2, -2, -2, 0])
    assert run_node("Div", a, b).tolist() == [3, -3, -3, 3, 0]
    least = np.array([-128, 100], np.int8)
    assert run_node("Div", least, np.array([3, -7], np.int8)).tolist() == [-42, -14]


def test_a_scalar_has_no_row_of_indices() -> None:
    """ONNX NonZero-13, unlike onnxruntime."""
    assert run_node("NonZero", np.array(5)).shape == (0, 1)
    assert run_node("NonZero", np.array(0)).shape == (0, 0)


def test_numbers_become_the_shortest_text_that_reads_back() -> None:
    values = np.array([1.5, 0.1, 1e10, -0.25, np.nan, np.inf, -np.inf], np.float32)
    texts = run_node("Cast", values, to=8)
    assert texts.tolist()[4:] == ["NaN", "INF", "-INF"]
    back = run_node("Cast", texts, to=1)
    np.testing.assert_array_equal(back, values)
    assert run_node("Cast", np.array([True, False]), to=8).tolist() == ["1", "0"]
    assert run_node("Cast", np.array(["12", "-3.9"], object), to=7).tolist() == [12, -3]


@pytest.mark.parametrize(
    ("round_mode", "expected"),
    [("up", [2, 4, 4, 2]), ("down", [2, 2, 2, 1]), ("nearest", [2, 2, 4, 2])],
)
def test_powers_of_two_are_rounded_as_asked(round_mode: str, expected: list[float]) -> None:
    values = np.array([2, 2.5, 3, 1.75], np.float32)
    result = run_node("Cast", values, to=24, round_mode=round_mode)
    assert result.astype(np.float32).tolist() == expected


@pytest.mark.parametrize("saturate", [1, 0])
def test_float8_saturates_only_if_asked(saturate: int) -> None:
    values = np.array([1e9, -1e9, 3, np.nan], np.float32)
    result = run_node("Cast", values, to=17, saturate=saturate)
    assert result.dtype == ml_dtypes.float8_e4m3fn
    wide = result.astype(np.float32)
    expected = [448, -448, 3, np.nan] if saturate else [np.nan, np.nan, 3, np.nan]
    np.testing.assert_array_equal(wide, expected)


def test_erf_is_within_its_error_bound() -> None:
    x = np.linspace(-5, 5, 20001, dtype=np.float32)
    exact = np.array([math.erf(v) for v in x.tolist()])
    assert np.abs(run_node("Erf", x) - exact).max() < 5e-7
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(run_node("Erf", wide), [math.erf(v) for v in wide.tolist()])


def test_half_precision_is_computed_in_single_and_rounded_once() -> None:
    x = np.linspace(-4, 4, 101).astype(np.float16)
    y = run_node("Softmax", x)
    assert y.dtype == np.float16
    wide = np.exp(x.astype(np.float64))
    np.testing.assert_array_equal(y, (wide / wide.sum()).astype(np.float16))


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("op", ["Exp", "Sigmoid", "Gelu", "ReduceSum", "GlobalAveragePool"])
def test_narrow_floats_keep_their_type(op: str, kind: type) -> None:
    x = np.ones((1, 2, 3, 3)).astype(kind)
    assert run_node(op, x).dtype == kind


def test_zero_sized_tensors_pass_through() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert run_node("Relu", empty).shape == (0, 3)
    assert run_node("MatMul", empty, np.ones((3, 2), np.float32)).shape == (0, 2)
    images, filters = np.zeros((0, 1, 4, 4), np.float32), np.ones((2, 1, 3, 3), np.float32)
    assert run_node("Conv", images, filters).shape == (0, 2, 2, 2)
    assert run_node("Concat", empty, empty, axis=0).shape == (0, 3)
    assert run_node("ReduceMax", empty, np.array([0])).tolist() == [[-np.inf] * 3]
    assert run_node("ReduceProd", empty, np.array([0])).tolist() == [[1, 1, 1]]
    assert run_node("ReduceMin", empty.astype(np.int32), np.array([0])).max() == 2**31 - 1
    assert run_node("TopK", empty, np.array([2]), outputs=2)[0].shape == (0, 2)
    boxes, scores = np.zeros((1, 0, 4), np.float32), np.zeros((1, 1, 0), np.float32)
    assert run_node("NonMaxSuppression", boxes, scores, np.array([3])).shape == (0, 3)


def test_nan_is_ordered_and_kept() -> None:
    values = np.array([1, np.nan, 3], np.float32)
    assert np.isnan(run_node("Max", values, np.zeros(3, np.float32))[1])
    assert np.isnan(run_node("Clip", values, np.array(0, np.float32))[1])
    assert np.isnan(run_node("Relu", values)[1])


def test_bernoulli_draws_ones_with_the_given_probability() -> None:
    for p in (0.0, 0.3, 1.0):
        drawn = run_node("Bernoulli", np.full((400, 100), p, np.float32), dtype=6)
        assert (drawn.shape, drawn.dtype) == ((400, 100), np.int32)
        assert set(np.unique(drawn)) <= {0, 1}
        # five standard deviations of the mean of 40,000 draws
        assert abs(drawn.mean() - p) <= 5 * math.sqrt(p * (1 - p) / drawn.size)
    assert run_node("Bernoulli", np.full(3, 0.5)).dtype == np.float64


@pytest.mark.parametrize(
    ("op", "options", "mean", "deviation"),
    [
        ("RandomNormal", {"mean": 2.0, "scale": 3.0}, 2, 3),
        ("RandomUniform", {"low": -1.0, "high": 5.0}, 2, 6 / math.sqrt(12)),
    ],
)
def test_random_tensors_have_the_moments_asked_for(
    op: str, options: dict[str, float], mean: float, deviation: float
) -> None:
    drawn = run_node(op, shape=[200, 200], **options)
    error = 5 * deviation / math.sqrt(drawn.size)
    assert abs(drawn.mean() - mean) < error
    assert abs(drawn.std() - deviation) < error
    like = run_node(f"{op}Like", np.zeros((3, 4)), **options)
    assert (like.shape, like.dtype) == ((3, 4), np.float64)


def test_a_seed_makes_every_run_draw_the_same() -> None:
    first, second = (run_node("RandomUniform", shape=[9], seed=3.0) for _ in range(2))
    other = run_node("RandomUniform", shape=[9], seed=4.0)
    assert first.tolist() == second.tolist() != other.tolist()


def test_multinomial_draws_classes_by_their_log_probability() -> None:
    scores = np.log(np.array([[0.1, 0.2, 0.7], [1e-30, 1.0, 1e-30]], np.float64)) + 5
    drawn = run_node("Multinomial", scores.astype(np.float32), sample_size=20000, seed=1.0)
    assert (drawn.shape, drawn.dtype) == ((2, 20000), np.int32)
    shares = np.bincount(drawn[0], minlength=3) / 20000
    np.testing.assert_allclose(shares, [0.1, 0.2, 0.7], atol=5 * 0.5 / math.sqrt(20000))
    assert set(drawn[1]) == {1}


def test_dropout_trains_before_opset_7_unless_it_is_a_test() -> None:
    ones = np.ones(10000, np.float32)
    kept = run_node("Dropout", ones, opset=6, ratio=0.25)
    assert set(np.unique(kept)) == {np.float32(0), np.float32(4 / 3)}
    assert abs((kept > 0).mean() - 0.75) < 5 * math.sqrt(0.75 * 0.25 / 10000)
    y, mask = run_node("Dropout", ones, opset=6, is_test=1, outputs=2)
    assert y.min() == 1
    assert mask.dtype == np.float32


def test_a_loop_without_trips_gives_an_empty_sequence_of_scalars() -> None:
    """The case of the ONNX suite that its runner cannot compare: sequences of rank-0 tensors."""
    parts = run_node("SplitToSequence", np.array([1.0, 2.0], np.float32), axis=0, keepdims=0)
    assert [part.shape for part in parts] == [(), ()]
    assert [part.item() for part in parts] == [1, 2]


def test_strings_are_split_and_normalised() -> None:
    words, counts = run_node("StringSplit", np.array(["a b", "c"], object), outputs=2)
    assert words.tolist() == [["a", "b"], ["c", ""]]
    assert counts.tolist() == [2, 1]
    kept = run_node(
        "StringNormalizer",
        np.array(["The", "cat", "the"], object),
        case_change_action="UPPER",
        stopwords=["the"],
    )
    assert kept.tolist() == ["CAT"]


@pytest.mark.parametrize("op", ["Elu", "Selu", "Celu"])
def test_exponential_units_lose_nothing_near_zero(op: str) -> None:
    """Against double precision; exp(x) - 1 in float32 would lose all digits of small x."""
    x = -np.logspace(-30, 1.9, 3000).astype(np.float32)
    alpha, gamma = (
        (1.67326319217681884765625, 1.05070102214813232421875) if op == "Selu" else (1, 1)
    )
    right = gamma * alpha * np.expm1(x.astype(np.float64))
    np.testing.assert_allclose(run_node(op, x), right, rtol=5e-7)
    edges = run_node(op, np.array([-np.inf, np.nan, 0, np.inf], np.float32))
    np.testing.assert_allclose(edges, [-gamma * alpha, np.nan, 0, np.inf], rtol=1e-6)

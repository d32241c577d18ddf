"""Outputs are compared by what they hold: numbers by distance, the rest by equality."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from ort_lite.cli.comparison import compare_outputs

INF, NAN = math.inf, math.nan


def relative(ours: object, reference: object) -> float:
    (difference,) = compare_outputs({"y": ours}, {"y": reference})
    return difference.relative


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_the_difference_is_measured_against_the_largest_magnitude() -> None:
    (found,) = compare_outputs({"y": floats(-8.0, 0.5)}, {"y": floats(-10.0, 0.25)})
    assert (found.absolute, found.relative, found.identical) == (2.0, 0.2, False)


def test_equal_bits_are_identical_whatever_they_are() -> None:
    (found,) = compare_outputs({"y": floats(NAN, INF, 1.0)}, {"y": floats(NAN, INF, 1.0)})
    assert (found.absolute, found.identical) == (0.0, True)


def test_zeros_of_different_sign_are_equal_but_not_identical() -> None:
    (found,) = compare_outputs({"y": floats(0.0)}, {"y": floats(-0.0)})
    assert (found.relative, found.identical) == (0.0, False)


@pytest.mark.parametrize(
    ("ours", "reference"),
    [
        (floats(NAN), floats(1.0)),
        (floats(1.0), floats(NAN)),
        (floats(INF), floats(-INF)),
        (floats(INF, 1.0), floats(3e38, 1.0)),
        (floats(1e-30), floats(0.0)),
    ],
    ids=["nan", "reference nan", "signs of inf", "overflow", "something for nothing"],
)
def test_what_no_tolerance_covers_is_infinitely_far(
    ours: np.ndarray, reference: np.ndarray
) -> None:
    assert relative(ours, reference) == INF


def test_the_same_nans_do_not_hide_a_difference_beside_them() -> None:
    assert relative(floats(NAN, 3.0), floats(NAN, 4.0)) == 0.25


def test_only_nans_and_infinities_may_be_all_there_is() -> None:
    ours = np.array([np.nan], dtype=np.float32)
    negative = np.array([-np.nan], dtype=np.float32)
    assert relative(ours, negative) == 0.0


def test_unsigned_integers_do_not_wrap() -> None:
    assert relative(np.array([0], np.uint8), np.array([2], np.uint8)) == 1.0


def test_neighbours_beyond_float64_are_told_apart() -> None:
    a, b = np.array([2**62], np.int64), np.array([2**62 + 1], np.int64)
    assert relative(a, b) > 0
    lowest, highest = np.array([-(2**63)], np.int64), np.array([2**63 - 1], np.int64)
    assert relative(highest, lowest) == pytest.approx(2.0)


def test_booleans_differ_or_not() -> None:
    assert relative(np.array([True, False]), np.array([True, True])) == 1.0


def test_complex_numbers_are_compared_by_distance() -> None:
    assert relative(np.array([3 + 4j]), np.array([0 + 5j])) == pytest.approx(math.sqrt(10) / 5)


def test_texts_are_equal_or_not() -> None:
    words = np.array(["a", "b"], dtype=object)
    assert relative(words, np.array(["a", "b"])) == 0.0
    assert relative(words, np.array(["a", "c"], dtype=object)) == INF


@pytest.mark.parametrize(
    ("ours", "reference", "problem"),
    [
        (floats(1.0), floats(1.0, 2.0), r"shape \(1,\) against \(2,\)"),
        (floats(1.0), np.array([1.0]), "type float32 against float64"),
        (floats(1.0), None, "the reference lacks it"),
        ([floats(1.0)], [], "list against list"),
    ],
)
def test_what_cannot_be_compared_says_why(ours: object, reference: object, problem: str) -> None:
    (found,) = compare_outputs({"y": ours}, {"y": reference})
    assert found.relative == INF
    assert re.fullmatch(problem, found.problem)


def test_a_list_is_as_far_as_its_worst_element() -> None:
    ours, reference = [floats(1.0), floats(3.0)], [floats(1.0), floats(4.0)]
    assert relative(ours, reference) == 0.25
    assert relative([], []) == 0.0


def test_an_output_of_either_side_alone_is_reported() -> None:
    found = compare_outputs({"a": floats(1.0)}, {"b": floats(1.0)})
    assert [d.output for d in found] == ["a", "b"]

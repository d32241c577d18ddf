"""Where chooses by bits: every type, shape and bit pattern comes through as in numpy.where."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.cpu.single_node import run_node

TYPES = [
    *(np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32, np.float64),
    *(ml_dtypes.bfloat16, np.complex64, np.complex128),
]
SHAPES = [
    ((40, 50), (40, 50), (40, 50)),
    ((1200, 1), (1, 1300), ()),
    ((), (1100, 1000), (1000,)),
    ((3, 1, 500), (40, 500), (1, 1, 1)),
    ((3, 0, 50), (50,), ()),
    ((4,), (4,), (4,)),
]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_values_are_those_of_numpy(dtype: Any, shapes: Any) -> None:
    random = np.random.default_rng(1)
    first, *rest = shapes
    condition = random.random(first) > 0.5
    x, y = (np.asarray(random.integers(0, 100, shape)).astype(dtype) for shape in rest)
    found = run_node("Where", condition, x, y, opset=16)
    right = np.where(condition, x, y)
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    np.testing.assert_array_equal(found, right)


def test_bits_of_nan_and_signs_of_zero_stay() -> None:
    random = np.random.default_rng(2)
    x, y = (random.integers(0, 2**32, 4096, np.uint32).view(np.float32) for _ in range(2))
    x[::3], y[::2] = -0.0, np.nan
    condition = random.random(4096) > 0.5
    found = run_node("Where", condition, x, y, opset=16)
    np.testing.assert_array_equal(
        found.view(np.uint32), np.where(condition, x.view(np.uint32), y.view(np.uint32))
    )


def test_texts_are_chosen_too() -> None:
    x, y = (np.array([f"{name}{i}" for i in range(2000)], object) for name in "xy")
    condition = np.arange(2000) % 3 == 0
    found = run_node("Where", condition, x, y, opset=16)
    np.testing.assert_array_equal(found, np.where(condition, x, y))


def test_parts_of_other_arrays_are_chosen_from() -> None:
    x = np.arange(8000, dtype=np.float32).reshape(80, 100)
    condition = x.T % 2 == 0
    found = run_node("Where", condition[::2], x.T[::2], -x.T[1::2], opset=16)
    np.testing.assert_array_equal(found, np.where(condition[::2], x.T[::2], -x.T[1::2]))


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_elements_are_masked_by_a_zero_of_either_sign(zero: float) -> None:
    random = np.random.default_rng(3)
    x = random.standard_normal((30, 1, 50)).astype(np.float32)
    x[::2] = np.nan
    condition = random.random((1, 800, 50)) > 0.5
    y = np.array([zero], np.float32)
    found = run_node("Where", condition, x, y, opset=16)
    right = np.where(condition, x, y)
    np.testing.assert_array_equal(found.view(np.uint32), right.view(np.uint32))

"""Integers at their ends: they wrap as two's complement does, and nothing traps."""

from __future__ import annotations

import numpy as np
import pytest
from unit.cpu.single_node import run_node

TYPES = [np.int8, np.int16, np.int32, np.int64]


def wrapped(value: int, dtype: type) -> int:
    bits = np.dtype(dtype).itemsize * 8
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@pytest.mark.parametrize("dtype", TYPES)
def test_the_least_integer_has_no_counterpart(dtype: type) -> None:
    least = int(np.iinfo(dtype).min)
    x = np.array([least, -1], dtype)
    for op in ("Abs", "Neg"):
        assert run_node(op, x).tolist() == [least, 1]
    # ONNX Runtime ends the process here: the quotient is no value of the type.
    minus_one = np.array([-1, -1], dtype)
    assert run_node("Div", x, minus_one).tolist() == [least, 1]
    assert run_node("Mod", x, minus_one).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_and_products_wrap(dtype: type) -> None:
    most = int(np.iinfo(dtype).max)
    a, b = np.array([most, -most], dtype), np.array([most, most], dtype)
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert run_node("Add", a, b).tolist() == [wrapped(p + q, dtype) for p, q in pairs]
    assert run_node("Sub", a, b).tolist() == [wrapped(p - q, dtype) for p, q in pairs]
    assert run_node("Mul", a, b).tolist() == [wrapped(p * q, dtype) for p, q in pairs]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_reductions_and_products_of_matrices_wrap(dtype: type) -> None:
    most = int(np.iinfo(dtype).max)
    x = np.array([most, most, 5], dtype)
    axes = np.array([0])
    total = wrapped(2 * most + 5, dtype)
    assert run_node("ReduceSum", x, axes, keepdims=0).tolist() == total
    assert run_node("CumSum", x, np.array(0)).tolist()[-1] == total
    squares = wrapped(2 * most * most + 25, dtype)
    assert run_node("MatMul", x[None], x[:, None]).tolist() == [[squares]]


@pytest.mark.parametrize("dtype", TYPES)
def test_nothing_divided_by_zero_traps(dtype: type) -> None:
    x, zero = np.array([7, -7, 0], dtype), np.zeros(3, dtype)
    assert run_node("Div", x, zero).tolist() == [0, 0, 0]
    assert run_node("Mod", x, zero).tolist() == [0, 0, 0]

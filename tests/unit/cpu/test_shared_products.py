"""Large products: right in every shape, with threads that nobody waits for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eps.cpu.blas_threads import BlasThreads, find_blas_threads
from eps.cpu.shared_products import multiply


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((4, 5), (5, 6)),
        ((100, 300), (300, 2000)),
        ((2000, 300), (300, 100)),
        ((130, 1000), (1000, 131)),
        ((1, 1000), (1000, 9000)),
        ((9000, 1000), (1000, 1)),
        ((24, 100, 64), (24, 64, 100)),
        ((3, 300, 300), (3, 300, 300)),
        ((7, 120, 200), (2, 1, 200, 300)),
        ((5, 1, 90, 200), (1, 6, 200, 70)),
        ((0, 300), (300, 2000)),
        ((300, 0), (0, 300)),
    ],
    ids=str,
)
@pytest.mark.parametrize("threads", [1, 3])
def test_products_are_those_of_float64(
    a: tuple[int, ...], b: tuple[int, ...], threads: int
) -> None:
    blas = find_blas_threads()
    x, y = random(*a), random(*b)
    expected = np.matmul(x.astype(np.float64), y.astype(np.float64))
    out = np.full(expected.shape, np.nan, np.float32)
    if blas is None:
        multiply(x, y, out)
    else:
        with blas.single() as before:
            pass
        blas.set(threads)
        try:
            multiply(x, y, out)
        finally:
            blas.set(before)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_transposed_factors_and_places_in_larger_arrays_are_views() -> None:
    x, y = random(600, 500), random(700, 600)
    room = np.zeros((500, 900), np.float32)
    multiply(x.T, y.T, room[:, 100:800])
    expected = x.T.astype(np.float64) @ y.T.astype(np.float64)
    np.testing.assert_allclose(room[:, 100:800], expected, rtol=1e-4, atol=1e-3)
    assert not room[:, :100].any()
    assert not room[:, 800:].any()


def test_infinities_are_results_in_every_thread() -> None:
    x, y = random(400, 400), random(400, 400)
    x[:] = np.inf
    y[0] = 0
    with np.errstate(all="ignore"):
        multiply(x, y, out := np.empty((400, 400), np.float32))
    assert np.isnan(out).all()


def test_a_product_that_fails_leaves_blas_its_threads() -> None:
    blas = find_blas_threads()
    if blas is None:
        pytest.skip("this numpy brings no OpenBLAS")
    with blas.single() as before:
        pass
    with pytest.raises(ValueError, match="matmul"):
        multiply(random(600, 500), random(400, 600), np.empty((600, 600), np.float32))
    with blas.single() as after:
        assert after == before


def test_a_number_that_is_set_during_a_product_holds_afterwards() -> None:
    number = [4]

    def put(count: int) -> None:
        number[0] = count

    blas = BlasThreads(lambda: number[0], put)
    with blas.single() as before:
        assert (before, number) == (4, [1])
        with blas.single() as again:
            assert (again, number) == (4, [1])
        assert number == [1]
        blas.set(3)
        assert number == [1]
    assert number == [3]
    with blas.single():
        number[0] = 2  # another library's wish
    assert number == [2]


CHILD = """
import os
import numpy as np
from eps.cpu.shared_products import multiply

x = np.random.default_rng(0).random((500, 500), np.float32)
expected = x.astype(np.float64) @ x.astype(np.float64)

def is_right():
    multiply(x, x, out := np.empty_like(x))
    return np.allclose(out, expected, rtol=1e-4)

assert is_right()
process = os.fork()
if not process:
    os._exit(0 if is_right() else 1)
assert os.waitpid(process, 0)[1] == 0
assert is_right()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root}
    command = [sys.executable, "-W", "ignore", "-c", CHILD]
    subprocess.run(command, check=True, env=environment, timeout=60)

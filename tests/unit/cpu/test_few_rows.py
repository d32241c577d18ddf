"""Products of a few rows or columns: right, and without copies of the larger matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eps.cpu import few_rows

Shapes = tuple[tuple[int, ...], tuple[int, ...]]


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def products(shapes: Shapes, monkeypatch: pytest.MonkeyPatch, *, turned: bool) -> list[Any]:
    """The shapes of the results that numpy is asked for; the whole one is compared."""
    a, b = (random(*shape) for shape in shapes)
    if turned:  # as Gemm gives it with transB
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    right = np.matmul(a.astype(np.float64), b.astype(np.float64))
    out, asked = np.full(right.shape, np.nan, np.float32), list[Any]()

    class Watched:
        """numpy, which notes the products that it is asked for."""

        def matmul(self, a: Any, b: Any, out: Any) -> None:
            asked.append(out.shape)
            np.matmul(a, b, out)

    monkeypatch.setattr(few_rows, "np", Watched())
    few_rows.multiply(a, b, out)
    np.testing.assert_allclose(out, right, rtol=1e-4, atol=1e-3)
    return asked


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("shapes", "part", "count"),
    [
        (((2, 256), (256, 768)), (1, 768), 2),
        (((4, 768), (768, 300)), (1, 300), 4),
        (((6, 1024), (1024, 512)), (1, 512), 6),
        (((2, 3, 512), (4, 2, 512, 512)), (4, 2, 1, 512), 3),
        (((900, 256), (256, 3)), (900, 1), 3),
    ],
)
def test_a_few_rows_or_columns_are_multiplied_one_by_one(
    shapes: Shapes, part: object, count: int, monkeypatch: pytest.MonkeyPatch, *, turned: bool
) -> None:
    assert products(shapes, monkeypatch, turned=turned) == [part] * count


@pytest.mark.parametrize(
    "shapes",
    [
        ((1, 1024), (1024, 1024)),
        ((7, 1024), (1024, 1024)),
        ((5, 512), (512, 600)),
        ((4, 128), (128, 512)),
        ((300, 300), (300, 300)),
    ],
)
def test_others_are_one_product(shapes: Shapes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(products(shapes, monkeypatch, turned=False)) == 1

"""Kernel functions of support vector machines against onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu_contrib.peer import Array, both, f32

ML = "ai.onnx.ml"


def agree(x: Array, vectors: Array, kind: str, params: tuple[float, float, float]) -> None:
    """Of a regressor whose weights are of both signs."""
    weights = np.linspace(-1, 1, len(vectors))
    attributes: dict[str, Any] = {
        "kernel_type": kind,
        "kernel_params": list(params),
        "n_supports": len(vectors),
        "support_vectors": vectors.reshape(-1).tolist(),
        "coefficients": weights.tolist(),
        "rho": [0.25],
    }
    (mine,), (theirs,) = both("SVMRegressor", [x], 1, domain=ML, **attributes)
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5 * np.abs(theirs).max())


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize(("rows", "vectors"), [(1, 1), (1, 300), (7, 3), (700, 130)])
def test_every_kernel(kind: str, rows: int, vectors: int) -> None:
    """Of more rows than are taken at a time, too."""
    agree(f32(rows, 5), f32(vectors, 5), kind, (0.3, 0.1, 3.0))


@pytest.mark.parametrize("degree", [0.0, 1.0, 2.0, 2.5, 7.0, 16.0, 17.0, -1.0])
def test_powers(degree: float) -> None:
    agree(np.abs(f32(4, 5)) + 0.1, np.abs(f32(9, 5)) + 0.1, "POLY", (0.3, 0.1, degree))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 64.0])
def test_neighbours_far_from_the_origin(offset: float, gamma: float) -> None:
    """Where |x|² - 2xv + |v|² would cancel the distance, in float32 and at last in float64."""
    x = np.float32(offset) + np.array([[0, 0], [1, 0], [0, 2], [0.5, 0.5]], np.float32)
    agree(x, x[:3], "RBF", (gamma, 0.0, 0.0))


def test_infinite_features_are_infinitely_far() -> None:
    x = np.array([[np.inf, 0], [-np.inf, 1], [3e38, -3e38], [1, 2]], np.float32)
    agree(x, f32(4, 2), "RBF", (0.5, 0.0, 0.0))

"""Pow of one exponent for all elements: the C library's answers, signs and special values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from eps.cpu import powers
from eps.cpu.powers import FEW, power

if TYPE_CHECKING:
    from collections.abc import Iterator

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30)
EXPONENTS = (3, 4, 5, -1, -2, -3, 1, 0, 2.5, -0.5, 1 / 3, 17, 1e10, np.inf, -np.inf, np.nan)


def bases(kind: str) -> np.ndarray[Any, np.dtype[Any]]:
    drawn = np.random.default_rng(0).normal(0, 3, 200)
    return np.concatenate([np.array(SPECIAL), drawn]).astype(kind)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_powers_are_those_of_single_elements(kind: str, exponent: float) -> None:
    x, y = bases(kind), np.array(exponent, kind)
    right = np.array([np.power(one, y[()]) for one in x], kind)
    found = power(x, y)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, right, rtol=4 * np.finfo(kind).eps)
    numbers = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(right[numbers]))


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_are_those_of_onnxruntime(exponent: float) -> None:
    graph = helper.make_graph(
        [helper.make_node("Pow", ["x", "y"], ["z"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, []),
        ],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    feed = {"x": bases("float32"), "y": np.array(exponent, np.float32)}
    (right,) = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, feed)
    np.testing.assert_allclose(power(feed["x"], feed["y"]), right, rtol=1e-6)


@pytest.mark.parametrize("exponent", [3.0, 4.0, 2.5])
def test_negative_bases_are_not_given_to_numpys_power(
    exponent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowest = []

    class Watched:
        """numpy, which notes what it is to take powers of."""

        def __getattr__(self, name: str) -> object:
            return getattr(np, name)

        def power(self, base: Any, *args: Any, **kwargs: Any) -> Any:
            lowest.append(base.min())
            return np.power(base, *args, **kwargs)

    monkeypatch.setattr(powers, "np", Watched())
    x = -np.arange(1, FEW + 1, dtype=np.float32)
    power(x, np.array(exponent, np.float32))
    assert all(low >= 0 for low in lowest)


def test_shapes_and_types() -> None:
    x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
    cubes = np.asarray(x**3)
    np.testing.assert_array_equal(power(x, np.array([[3]], np.int64)), cubes)
    assert power(np.float32(2) * np.ones(1, np.float32), np.full((1, 1), 3.0)).shape == (1, 1)
    np.testing.assert_array_equal(power(x.astype(np.int32), np.array(3)), cubes.astype(np.int32))
    np.testing.assert_array_equal(power(np.array([2, 4]), np.array(-1)), [0, 0])
    np.testing.assert_array_equal(power(x.astype(np.float16), np.array(3)), cubes)

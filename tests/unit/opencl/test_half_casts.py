"""Casts between float32 and float16 on OpenCL devices: the same bits as numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_models import NodeSet
from onnx import TensorProto
from system_limits import WINDOWS

Array = np.ndarray[Any, np.dtype[Any]]

NO_POCL = pytest.mark.skipif(WINDOWS, reason="PyPI has no PoCL for Windows")
OPTIONS = ({}, pytest.param({"platform": "portable"}, marks=NO_POCL), {"templates": "gpu"})
"""The first device, PoCL's, and kernels of work-groups."""


def every_half() -> Array:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def near_halves() -> Array:
    """float32 at, halfway between and next to the finite halves, and beyond them."""
    halves = every_half()
    halves = np.sort(halves[np.isfinite(halves)].astype(np.float32))
    middles = (halves[1:] + halves[:-1]) / 2
    neighbours = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    ends = np.float32([65519.996, 65520, -65520, 1e30, -1e30, np.inf, -np.inf, np.nan, 1e-45, -0.0])
    return np.concatenate([halves, middles, *neighbours, ends])


def assert_same(found: Array, right: Array) -> None:
    """Equal bits; of NaN only that it is one."""
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    numbers = ~np.isnan(right)
    np.testing.assert_array_equal(np.isnan(found), ~numbers)
    bits = np.uint16 if right.dtype == np.float16 else np.uint32
    np.testing.assert_array_equal(found[numbers].view(bits), right[numbers].view(bits))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_casts_to_float16_round_as_numpy_does(options: dict[str, str]) -> None:
    nodes, sizes = NodeSet(), (slice(None), slice(7), slice(1))
    for part in sizes:
        nodes.add("Cast", [near_halves()[part]], to=TensorProto.FLOAT16)
    with np.errstate(over="ignore"):
        for found, part in zip(nodes.run_with(options), sizes, strict=True):
            assert_same(found, near_halves()[part].astype(np.float16))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_casts_from_float16_are_exact(options: dict[str, str]) -> None:
    nodes, sizes = NodeSet(), (slice(None), slice(7), slice(1))
    for part in sizes:
        nodes.add("Cast", [every_half()[part]], to=TensorProto.FLOAT)
    for found, part in zip(nodes.run_with(options), sizes, strict=True):
        assert_same(found, every_half()[part].astype(np.float32))


def test_a_cast_there_and_back_rounds() -> None:
    nodes = NodeSet()
    x = near_halves()[60000:60100]
    narrow = nodes.add("Cast", [x], to=TensorProto.FLOAT16)
    nodes.add("Cast", [narrow], to=TensorProto.FLOAT)
    assert_same(nodes.run()[1], x.astype(np.float16).astype(np.float32))


def test_a_transposed_value_is_cast_in_its_order() -> None:
    nodes = NodeSet()
    x = np.arange(35, dtype=np.float32).reshape(5, 7) / 3
    turned = nodes.add("Transpose", [x], perm=(1, 0))
    nodes.add("Cast", [turned], to=TensorProto.FLOAT16)
    assert_same(nodes.run()[1], np.ascontiguousarray(x.T.astype(np.float16)))


@pytest.mark.parametrize("kind", [np.int32, np.float64])
def test_a_cast_of_another_type_to_float16_is_refused_with_the_reason(kind: type[Any]) -> None:
    nodes = NodeSet()
    name = nodes.add("Cast", [np.ones(3, kind)], to=TensorProto.FLOAT16).split("/")[0]
    assert f"Cast from {np.dtype(kind).name} to float16" in nodes.refusals()[name]

"""Weights in blocks of steps: the bytes are onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as theirs

from ort_lite.capi import onnxruntime_pybind11_state as ours

SHAPES = [(64, 5), (33, 3), (256, 16), (300, 7), (17, 1), (1, 4), (129, 8), (35, 2)]
KINDS = ["normal", "positive", "zeros", "halves"]
FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float16])
BLOCKS = pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
SIDES = pytest.mark.parametrize("symmetric", [True, False])
SIGNED = True
BEHIND = 256
"""Elements behind each array, which nobody may touch."""


def weights(shape: tuple[int, int], kind: str, dtype: Any) -> Any:
    found = np.random.default_rng(15).standard_normal(shape)
    if kind == "positive":
        found = np.abs(found) + 1
    if kind == "zeros":
        found[:, 0] = 0
    if kind == "halves":
        found = np.round(found * 4) / 8
    return found.astype(dtype)


def filled(*sizes: tuple[int, Any]) -> list[Any]:
    """Arrays of bytes that are not zero, to see which are left alone."""
    return [
        np.full((size + BEHIND) * np.dtype(kind).itemsize, 0xA5, np.uint8).view(kind)
        for size, kind in sizes
    ]


def compare(name: str, places: list[tuple[int, Any]], *arguments: Any) -> None:
    """Run both on equal arrays: `arguments` begin with the weights, behind the first place."""
    source, *rest = arguments
    results = []
    for binding in (ours, theirs):
        first, *others = filled(*places)
        said = getattr(binding, name)(first, source, *others, *rest)
        results.append((said, [place.view(np.uint8) for place in (first, *others)]))
    (mine, my_bytes), (expected, their_bytes) = results
    assert mine == expected
    for got, wanted in zip(my_bytes, their_bytes, strict=True):
        np.testing.assert_array_equal(got, wanted)


@FLOATS
@BLOCKS
@SIDES
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_steps_of_columns_are_theirs(bits: int, block: int, dtype: Any, *, symmetric: bool) -> None:
    for shape in SHAPES:
        depth, width = shape
        blocks = -(-depth // block)
        places = [
            (width * blocks * block * bits // 8, np.uint8),
            (width * blocks, dtype),
            (width * -(-blocks * bits // 8), np.uint8),
        ]
        for kind in KINDS:
            given = weights(shape, kind, dtype)
            name = f"quantize_matmul_{bits}bits"
            compare(name, places, given, block, width, depth, symmetric)


@FLOATS
@SIDES
@pytest.mark.parametrize("block", [16, 20, 64, 300])
@pytest.mark.parametrize("name", ["quantize_qdq_matmul_4bits", "quantize_qdq_matmul_2bits"])
def test_steps_in_order_are_theirs(name: str, block: int, dtype: Any, *, symmetric: bool) -> None:
    for shape in SHAPES:
        depth, width = shape
        if "2bits" in name and width % 2:
            continue  # theirs leaves some steps out
        blocks = -(-depth // block)
        places = [
            (-(-depth * width // 2), np.uint8),
            (blocks * width, dtype),
            (-(-blocks * width // 2), np.uint8),
        ]
        for kind in KINDS:
            compare(name, places, weights(shape, kind, dtype), block, width, depth, symmetric)


@FLOATS
@BLOCKS
@pytest.mark.parametrize("quant_type", [0, 1], ids=["fp4", "nf4"])
def test_steps_of_four_bit_floats_are_theirs(quant_type: int, block: int, dtype: Any) -> None:
    for shape in SHAPES:
        depth, width = shape
        count = depth * width
        places = [(-(-count // 2), np.uint8), (-(-count // block), dtype)]
        for kind in KINDS:
            given = weights(shape, kind, dtype)
            compare("quantize_matmul_bnb4", places, given, block, quant_type, width, depth)


def test_what_does_not_fit_is_refused() -> None:
    source, scale = np.zeros((32, 2), np.float32), np.zeros((2, 2), np.float32)
    steps, zeros = np.zeros((2, 2, 8), np.uint8), np.zeros((2, 1), np.uint8)
    quantize = ours.quantize_matmul_4bits
    with pytest.raises(ValueError, match="block size is 17, expected one of"):
        quantize(steps, source, scale, zeros, 17, 2, 32, SIGNED)
    with pytest.raises(TypeError, match="float64 and float32, expected float32 or float16 both"):
        quantize(steps, source.astype(np.float64), scale, zeros, 16, 2, 32, SIGNED)
    with pytest.raises(TypeError, match="expected uint8"):
        quantize(steps.astype(np.int8), source, scale, zeros, 16, 2, 32, SIGNED)
    with pytest.raises(TypeError, match="not contiguous"):
        quantize(steps, np.zeros((2, 32), np.float32).T, scale, zeros, 16, 2, 32, SIGNED)
    for name, arrays in {
        "dst": (steps[:1], source, scale, zeros),
        "src": (steps, source[:3], scale, zeros),
        "scale": (steps, source, scale[:1], zeros),
        "zero_points": (steps, source, scale, zeros[:1]),
    }.items():
        with pytest.raises(ValueError, match=f"{name} has .* elements"):
            quantize(*arrays, 16, 2, 32, not SIGNED)
    with pytest.raises(ValueError, match="block size is 0, expected 1 or more"):
        ours.quantize_qdq_matmul_4bits(steps, source, scale, zeros, 0, 2, 32, SIGNED)
    with pytest.raises(ValueError, match="quant_type is 2"):
        ours.quantize_matmul_bnb4(steps, source, scale, 16, 2, 2, 32)

"""Rarer operators and forms that ONNX Runtime takes, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu_contrib.peer import RANDOM, both, f32, scale, u8

Array = np.ndarray[Any, Any]


def agree(mine_and_theirs: tuple[list[Array], list[Array]], atol: float = 0.0) -> None:
    theirs, mine = mine_and_theirs
    for a, b in zip(mine, theirs, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5 if atol else 0, atol=atol)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("segmented", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_quantized_embeddings(*, masked: bool, segmented: bool, signed: bool) -> None:
    def table(*shape: int) -> Array:
        return (u8(*shape) - 128).astype(np.int8) if signed else u8(*shape)

    def zero() -> Array:
        return np.array(3, np.int8 if signed else np.uint8)

    ids = RANDOM.integers(0, 9, (2, 5)).astype(np.int32)
    inputs = [
        ids,
        RANDOM.integers(0, 2, (2, 5)).astype(np.int32) if segmented else None,
        table(9, 8),
        table(6, 8),
        table(2, 8) if segmented else None,
        table(8),
        table(8),
        (RANDOM.random((2, 5)) < 0.7).astype(np.int32) if masked else None,
        scale(0.02),
        scale(0.03),
        scale(0.01) if segmented else None,
        scale(0.05),
        scale(0.04),
        zero(),
        zero(),
        zero() if segmented else None,
        zero(),
        zero(),
    ]
    agree(both("QEmbedLayerNormalization", inputs, 2, epsilon=1e-12), 1e-5)


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64])
def test_hashes(kind: type[Any], seed: int, positive: int) -> None:
    values = RANDOM.integers(0, 1 << 20, (3, 4)).astype(kind)
    agree(both("MurmurHash3", [values], seed=seed, positive=positive))


def test_hashes_of_strings() -> None:
    words = np.array(["", "a", "ab", "abc", "abcd", "words of more than one block", "äöü"], object)
    agree(both("MurmurHash3", [words], positive=0))


@pytest.mark.parametrize(("dim", "size", "step"), [(-1, 3, 2), (0, 2, 1), (1, 4, 4), (2, 5, 3)])
def test_windows(dim: int, size: int, step: int) -> None:
    agree(both("UnfoldTensor", [f32(3, 4, 5)], dim=dim, size=size, step=step))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("length", [None, 8, 11])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("shape", [(2, 40), (2, 40, 1), (2, 40, 2)])
def test_short_time_transforms_of_signals_without_a_last_axis(
    shape: tuple[int, ...], onesided: int, length: int | None, kind: type[Any]
) -> None:
    """STFT takes [batch, length] in onnxruntime, as exporters write it."""
    window = None if length == 11 else np.hanning(8).astype(kind)
    inputs = [f32(*shape).astype(kind), np.array(3), window]
    if length is not None:
        inputs.append(np.array(length))
    agree(both("STFT", inputs, domain="", onesided=onesided), 1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 5), (6, 1)])
def test_boxes_of_images(mode: str, size: tuple[int, int]) -> None:
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.3, 0.5, 1.2, 0.6]], np.float32)
    images = np.array([0, 1, 0], np.int32)
    inputs: list[Array | None] = [f32(2, 3, 7, 6), boxes, images, np.array(size, np.int32)]
    agree(both("CropAndResize", inputs, mode=mode, extrapolation_value=0.5), 1e-5)


@pytest.mark.parametrize("shape", [(4, 6), (1, 7, 3), (1, 1), (5, 1)])
def test_cheapest_paths(shape: tuple[int, ...]) -> None:
    agree(both("DynamicTimeWarping", [f32(*shape)]))


def test_cheapest_path_of_equal_costs() -> None:
    agree(both("DynamicTimeWarping", [np.ones((4, 5), np.float32)]))

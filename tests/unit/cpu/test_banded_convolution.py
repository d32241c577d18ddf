"""Filters of one channel that are zero but for a band, against the definition in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.cpu.test_block_convolution import expect, run_conv

from eps.cpu.banded_convolution import find_bands
from eps.cpu.windows import WindowAttributes

RANDOM = np.random.default_rng(0)


def phases(filters: int, taps: int, band: int, rest: float = 0.0) -> Any:
    """Filters [filters, 1, 1, taps] whose bands move on, with `rest` elsewhere."""
    w = np.full((filters, 1, 1, taps), rest, np.float32)
    for number in range(filters):
        start = (taps - band) * number // filters
        w[number, 0, 0, start : start + band] = RANDOM.standard_normal(band)
    return w


def bands_of(w: Any, length: int, step: int) -> int:
    attributes = WindowAttributes(
        kernel_shape=None,
        strides=(1, step),
        dilations=None,
        pads=None,
        auto_pad="NOTSET",
        ceil_mode=False,
    )
    return len(find_bands(w, attributes.axes((1, length), w.shape[2:])))


def agrees(x: Any, w: Any, pads: tuple[int, int], step: int) -> None:
    y = run_conv(x, w, pads=[0, pads[0], 0, pads[1]], strides=[1, step])
    expected = expect(x, w, pads, step)
    assert y.shape == (*expected.shape[:2], 1, expected.shape[-1])
    largest = float(np.abs(expected).max(initial=0))
    np.testing.assert_allclose(y.reshape(expected.shape), expected, rtol=0, atol=1e-6 * largest)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("rest", [0.0, 1e-20], ids=["zeros", "a window's ends"])
@pytest.mark.parametrize(
    ("filters", "taps", "band", "step"), [(160, 475, 33, 441), (70, 300, 9, 50), (96, 64, 1, 7)]
)
def test_answers_are_those_of_the_definition(
    filters: int, taps: int, band: int, step: int, rest: float, batch: int
) -> None:
    w = phases(filters, taps, band, rest)
    x = RANDOM.standard_normal((batch, 1, 1, 4000)).astype(np.float32)
    assert bands_of(w, 4000, step) == -(-filters // 32)
    agrees(x, w, (17, 30), step)


def test_filters_of_zeros_give_zeros() -> None:
    w = phases(96, 128, 5)
    w[32:64] = 0
    x = RANDOM.standard_normal((1, 1, 1, 1000)).astype(np.float32)
    assert bands_of(w, 1000, 8) == 3
    agrees(x, w, (0, 0), 8)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_infinity_and_nan_meet_every_tap(value: float) -> None:
    w = phases(64, 128, 5)
    x = RANDOM.standard_normal((1, 1, 1, 1000)).astype(np.float32)
    x[..., 500] = value
    y = run_conv(x, w, strides=[1, 100])
    with np.errstate(all="ignore"):
        expected = expect(x, w, (0, 0), 100)
    np.testing.assert_array_equal(np.isnan(y.reshape(expected.shape)), np.isnan(expected))


def test_what_is_left_out_counts_where_it_is_much() -> None:
    """The only element that is not 0 meets the ends of windows alone."""
    w = phases(64, 128, 3, rest=1e-20)
    x = np.zeros((1, 1, 1, 128), np.float32)
    x[..., 127] = 1e15
    w[:, 0, 0, 127] = 1e-20
    agrees(x, w, (0, 0), 1)


@pytest.mark.parametrize(
    "w",
    [phases(64, 128, 100), phases(64, 128, 5)[:40], phases(64, 60, 3)],
    ids=["wide bands", "few filters", "few taps"],
)
def test_other_filters_are_computed_whole(w: Any) -> None:
    assert bands_of(w, 1000, 8) == 0
    agrees(RANDOM.standard_normal((1, 1, 1, 1000)).astype(np.float32), w, (0, 0), 8)


def test_weights_that_are_not_finite_are_computed_whole() -> None:
    w = phases(64, 128, 5)
    w[0, 0, 0, 100] = np.nan
    assert bands_of(w, 1000, 8) == 0

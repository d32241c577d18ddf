"""float32 rounded to float16: the bits that numpy gives, for every kind of value."""

from __future__ import annotations

import numpy as np
import pytest

from eps.cpu.kernels.halves import BLOCK, LEAST, round_to_half

CODES = np.arange(1 << 16, dtype=np.uint16)
FINITE = CODES[(CODES & 0x7C00) != 0x7C00]  # all but infinities and what is not a number
HALVES = FINITE.view(np.float16).astype(np.float32)
MIDDLE = ((HALVES[:-1].astype(np.float64) + HALVES[1:]) / 2).astype(np.float32)
CASES = {
    "every float16": HALVES,
    "halfway": MIDDLE,
    "just below": np.nextafter(MIDDLE, np.float32(0)),
    "just above": np.nextafter(MIDDLE, np.copysign(np.float32(3e38), MIDDLE)),
    "every exponent": np.arange(0, 1 << 32, 40961, dtype=np.uint64).astype(np.uint32).view("f4"),
    "around the ends": np.tile(
        np.array(
            [0, -0.0, 65504, 65519.996, 65520, -65520, 1e38, np.inf, -np.inf, np.nan, 2**-24,
             2**-25, 2**-14, 1e-40, -1e-45],
            np.float32,
        ), LEAST,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_bits_are_numpys(name: str) -> None:
    values = CASES[name]
    assert values.size >= LEAST
    expected = values.astype(np.float16)
    np.testing.assert_array_equal(np.isnan(round_to_half(values)), np.isnan(expected))
    numbers = ~np.isnan(expected)
    mine, theirs = (a.view(np.uint16)[numbers] for a in (round_to_half(values), expected))
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, BLOCK + 1), (2, BLOCK)])
def test_shapes_and_strides_are_kept(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(round_to_half(values), values.astype(np.float16))
    turned = values.T
    np.testing.assert_array_equal(round_to_half(turned), turned.astype(np.float16))

"""float32 rounded to float16, bit for bit as IEEE 754 and numpy, without numpy's slow cases.

numpy raises the floating-point flags for each result that is not exact below the normal numbers,
which takes 75 ns, as for most values of a Softmax. Here whole blocks are rounded by integer
arithmetic: 4 ns an element for any values, as numpy takes for normal ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from eps.cpu.arrays import Array

BLOCK = 1 << 15
"""Elements that are rounded at a time; they stay in a core's cache."""
LEAST = 1 << 14
"""Elements from which that is faster than numpy."""

_SIGN = 0x8000
_INFINITY = np.uint32(0x7F800000)
_LEAST_NORMAL = np.uint32(0x38800000)
"""Bits of 2**-14 as float32: results below it are multiples of 2**-24."""
_REBIAS = np.uint32(0x38000000 - 0xFFF)
"""Exponents of float16 are 112 less; less the half of a last place, which rounds."""
_HALF = np.float32(0.5)
"""The float32 whose last place is 2**-24: a sum with it is rounded to multiples of that."""
_HALF_BITS = np.uint32(0x3F000000)
_INFINITE_HALF = np.uint32(0x7C00)


def round_to_half(x: Array) -> Array:
    """float32 `x` as float16, of the same shape; halfway cases to even, too large to infinity."""
    if x.size < LEAST:
        return x.astype(np.float16)
    result = np.empty(x.shape, np.float16)
    source = np.ascontiguousarray(x).reshape(-1)
    target = result.reshape(-1).view(np.uint16)
    size = min(BLOCK, source.size)
    buffers = [np.empty(size, np.uint32) for _ in range(4)]
    is_small, is_nan = np.empty(size, np.bool_), np.empty(size, np.bool_)
    for start in range(0, source.size, BLOCK):
        values = source[start : start + BLOCK]
        count = values.size
        _round_block(
            values,
            target[start : start + count],
            [buffer[:count] for buffer in buffers],
            (is_small[:count], is_nan[:count]),
        )
    return result


def _round_block(
    values: Array, target: Array, buffers: list[Array], masks: tuple[Array, Array]
) -> None:
    magnitude, normal, small, sign = buffers
    is_small, is_nan = masks
    bits = values.view(np.uint32)
    np.bitwise_and(bits, 0x7FFFFFFF, out=magnitude)
    np.right_shift(bits, 16, out=sign)
    np.bitwise_and(sign, _SIGN, out=sign)
    with np.errstate(all="ignore"):  # of infinities and of what is not a number
        np.add(magnitude.view(np.float32), _HALF, out=small.view(np.float32))
    np.subtract(small, _HALF_BITS, out=small)
    np.right_shift(magnitude, 13, out=normal)
    np.bitwise_and(normal, 1, out=normal)
    np.add(normal, magnitude, out=normal)
    np.subtract(normal, _REBIAS, out=normal)
    np.right_shift(normal, 13, out=normal)
    np.minimum(normal, _INFINITE_HALF, out=normal)
    np.less(magnitude, _LEAST_NORMAL, out=is_small)
    np.copyto(normal, small, where=is_small)
    np.bitwise_or(normal, sign, out=normal)
    target[...] = normal
    np.greater(magnitude, _INFINITY, out=is_nan)
    if is_nan.any():
        target[is_nan] = values[is_nan].astype(np.float16).view(np.uint16)

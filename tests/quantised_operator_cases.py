"""Random cases of recurrent and of quantised operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from operator_chance import Chance, Writer

    Array = np.ndarray[Any, np.dtype[Any]]


def recurrent(gates: int) -> Writer:
    def write(c: Chance) -> None:
        hidden, size, both = c.pick(3, 8), c.pick(4, 9), c.pick(1, 2)
        w = c.floats(both, gates * hidden, size, low=-0.5, high=0.5)
        r = c.floats(both, gates * hidden, hidden, low=-0.5, high=0.5)
        bias = c.floats(both, 2 * gates * hidden, low=-0.5, high=0.5)
        direction = "bidirectional" if both == 2 else "forward"
        x = c.floats(5, 2, size)
        c.add(x, w, r, bias, fixed=(1, 2, 3), outputs=2, hidden_size=hidden, direction=direction)

    return write


def scale(*shape: int) -> Array:
    return np.full(shape, 0.05, np.float32)


def quantize(c: Chance) -> None:
    zero = np.array(3, c.pick("int8", "uint8"))
    c.add(c.floats(*c.shape()), scale(), zero, fixed=(1, 2))


def dequantize(c: Chance) -> None:
    x = c.integers(c.pick("int8", "uint8"), *c.shape(), low=-20, high=100)
    c.add(x, scale(), np.array(3, x.dtype), fixed=(1, 2))


def matmul_integer(c: Chance) -> None:
    a, b = c.integers("uint8", 5, 7, high=255), c.integers("int8", 7, 9, low=-66, high=66)
    c.add(a, b, np.array(3, np.uint8), np.array(1, np.int8), fixed=(2, 3))


def conv_integer(c: Chance) -> None:
    x, w = c.integers("uint8", 1, 3, 6, 6, high=255), c.integers("uint8", 5, 3, 3, 3, high=255)
    c.add(x, w, np.array(7, np.uint8), fixed=(1, 2), pads=[1, 1, 1, 1])


def qlinear_matmul(c: Chance) -> None:
    zero = np.array(3, np.uint8)
    a, b = c.integers("uint8", 5, 7, high=99), c.integers("uint8", 7, 9, high=99)
    c.add(a, scale(), zero, b, scale(), zero, scale(), zero, fixed=(1, 2, 3, 4, 5, 6, 7))


def qlinear_conv(c: Chance) -> None:
    zero = np.array(3, np.uint8)
    x, w = c.integers("uint8", 1, 3, 6, 6, high=99), c.integers("uint8", 5, 3, 3, 3, high=99)
    fixed = (1, 2, 3, 4, 5, 6, 7)
    c.add(x, scale(), zero, w, scale(), zero, scale(), zero, fixed=fixed, pads=[1, 1, 1, 1])

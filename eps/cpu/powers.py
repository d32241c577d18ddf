"""ONNX Pow-15: powers in the type of the base.

numpy's `power` of negative bases is computed an element at a time where that of positive ones is
not: 60 and 1 ns for an element with AVX-512. One exponent for all elements is common, and for it
the power of a negative base follows from that of its magnitude.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import is_floating

if TYPE_CHECKING:
    from eps.cpu.arrays import Array

FEW = 32
"""Elements for which numpy's own function takes less time than the steps around it."""
_VECTORISED = ("float32", "float64")


def power(a: Array, b: Array) -> Array:
    """a ** b in the type of a: ONNX Pow-15."""
    if is_floating(a.dtype):
        exponents = b.astype(a.dtype, copy=False)
        if b.size == 1 and b.ndim <= a.ndim:
            return _one_power(a, exponents.reshape(()))
        return np.asarray(np.power(a, exponents))
    if b.dtype.kind in "iu" and (b.dtype.kind == "u" or not b.size or int(b.min()) >= 0):
        return np.asarray(np.power(a, b.astype(a.dtype, copy=False)))
    return np.asarray(np.power(a.astype(np.float64), b.astype(np.float64))).astype(a.dtype)


def _one_power(x: Array, exponent: Array) -> Array:
    """`x` to the power of one exponent of the same type.

    The cube is a product, as in onnxruntime, and may be a unit in the last place from `np.power`.
    """
    number = float(exponent)
    if number == 2:
        return np.asarray(np.square(x))
    if number == 0.5:
        return np.asarray(np.sqrt(x))
    if x.dtype.name not in _VECTORISED or x.size < FEW or not isfinite(number):
        return np.asarray(np.power(x, exponent))
    if number == 3:
        square = np.square(x)
        return np.asarray(np.multiply(square, x, out=square))
    result = np.abs(x)
    np.power(result, exponent, out=result)
    if not number.is_integer():
        result[(x < 0) & (x > -np.inf)] = np.nan
    elif number % 2:
        np.copysign(result, x, out=result)
    return np.asarray(result)

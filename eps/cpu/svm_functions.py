"""Kernel functions of support vector machines, of all rows and vectors at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.shared_work import run_shared

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelInfo

    KernelFunction = Callable[[Array], Array]
    """Of rows [N, features] and the vectors [M, features] that it has: [N, M] in float32."""

_BLOCK = 1 << 16
"""Rows times vectors whose products are made at a time: they stay in a cache."""
_MOST_PRODUCTS = 16
"""Powers up to this degree are products: numpy's `power` takes thirty times as long as one."""
_MOST_SQUARES = 2.0**26
"""Of gamma times |x|² + |v|²: below it rounding in |x|² - 2xv + |v|², in float64, changes an
exponent by less than 2⁻²⁴, half of what float32 tells apart near 1."""


def kernel_function(info: KernelInfo, vectors: Array) -> KernelFunction:
    """The node's `kernel_type` of `vectors` [M, features], float32.

    Raises:
        ValueError: There is no such kernel.
    """
    name = info.attr("kernel_type", "LINEAR")
    gamma, coef0, degree = map(np.float32, info.attr("kernel_params") or (0, 0, 0))
    turned = np.ascontiguousarray(vectors.T)

    def scale(x: Array) -> Array:
        products: Array = x @ turned
        products *= gamma
        products += coef0
        return products

    def sigmoid(x: Array) -> Array:
        products = scale(x)
        return np.tanh(products, out=products)

    functions: dict[str, Callable[[], KernelFunction]] = {
        "LINEAR": lambda: lambda x: x @ turned,
        "POLY": lambda: lambda x: _power(scale(x), degree),
        "SIGMOID": lambda: sigmoid,
        "RBF": lambda: _Gaussian(vectors, gamma),
    }
    if name not in functions:
        raise ValueError(f"{info.op_type}: kernel_type is '{name}', not one of {sorted(functions)}")
    return functions[name]()


def weighted_sums(function: KernelFunction, weights: Array, x: Array) -> Array:
    """`function(x) @ weights` [N, columns] of weights [M, columns], a block of rows at a time."""
    step = max(1, _BLOCK // max(1, len(weights)))
    if len(x) <= step:
        return np.asarray(function(x) @ weights)
    sums = np.empty((len(x), weights.shape[1]), np.float32)

    def add(start: int) -> None:
        rows = slice(start, start + step)
        np.matmul(function(x[rows]), weights, out=sums[rows])

    run_shared([partial(add, start) for start in range(0, len(x), step)])
    return sums


def _power(base: Array, degree: np.float32) -> Array:
    """`base` to the power `degree`; `base` may be written over."""
    if not (1 <= degree <= _MOST_PRODUCTS and degree == int(degree)):
        return np.asarray(base**degree)
    power = np.ones_like(base)
    rest = int(degree)
    while True:
        if rest & 1:
            np.multiply(power, base, out=power)
        rest >>= 1
        if not rest:
            return power
        np.multiply(base, base, out=base)


class _Gaussian:
    """exp(-gamma |x - v|²)."""

    def __init__(self, vectors: Array, gamma: np.float32) -> None:
        self._vectors, self._gamma = vectors, gamma
        doubles = vectors.astype(np.float64)
        self._squares = np.square(doubles).sum(1)
        self._turned = np.ascontiguousarray(-2 * doubles.T)
        self._largest = float(self._squares.max(initial=0))

    def __call__(self, x: Array) -> Array:
        doubles = x.astype(np.float64)
        squares = np.einsum("nf,nf->n", doubles, doubles)
        largest = float(squares.max(initial=0)) + self._largest
        if not abs(float(self._gamma)) * largest < _MOST_SQUARES:  # or it is not a number
            exponents = self._differences(x)
        else:
            distances = doubles @ self._turned
            distances += self._squares
            distances += squares[:, None]
            exponents = np.maximum(distances, 0, out=distances).astype(np.float32)
        exponents *= -self._gamma
        return np.exp(exponents, out=exponents)

    def _differences(self, x: Array) -> Array:
        """|x - v|² [N, M] of the differences themselves, which cancels nothing."""
        result = np.empty((len(x), len(self._vectors)), np.float32)
        for row, squares in zip(x, result, strict=True):
            np.square(row - self._vectors).sum(1, out=squares)
        return result

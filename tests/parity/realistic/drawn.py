"""Inputs of recorded cases, drawn alike by every release of numpy on every machine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_HALVES = 4
"""So many uniform numbers make one that is nearly normal, within four standard deviations."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An array that is made when it is needed.

    Attributes:
        kind: "normal" with standard deviation `high`; "uniform" in [low, high); "whole" numbers
            in [low, high); "order" is a permutation of the whole numbers along the last axis.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: Any
    low: float = 0
    high: float = 1

    def array(self, key: str) -> Array:
        """The array that belongs to `key`."""
        # numpy promises the streams of its bit generators, not those of its distributions.
        words = np.random.Philox(key=_number(key))
        count = int(np.prod(self.shape))
        if self.kind == "normal":
            parts = _units(words, count * _HALVES).reshape(count, _HALVES)
            values = (parts.sum(1) - _HALVES / 2) * (self.high * (12 / _HALVES) ** 0.5)
        elif self.kind == "uniform":
            values = _units(words, count) * (self.high - self.low) + self.low
        elif self.kind == "whole":
            values = np.floor(_units(words, count) * (self.high - self.low)) + self.low
        else:
            values = np.argsort(_units(words, count).reshape(self.shape), -1, kind="stable")
        return np.asarray(values.reshape(self.shape)).astype(self.dtype)


def _number(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def _units(words: np.random.Philox, count: int) -> Array:
    """Numbers in [0, 1) of 24 bits, which sums and products of a few keep exact."""
    return (words.random_raw(count) >> np.uint64(40)).astype(np.float64) / (1 << 24)


def normal(*shape: int, scale: float = 1, dtype: Any = np.float32) -> Drawn:
    """Nearly normal numbers with standard deviation `scale`."""
    return Drawn("normal", shape, dtype, high=scale)


def uniform(low: float, high: float, *shape: int, dtype: Any = np.float32) -> Drawn:
    """Evenly spread numbers in [low, high)."""
    return Drawn("uniform", shape, dtype, low, high)


def whole(low: int, high: int, *shape: int, dtype: Any = np.int64) -> Drawn:
    """Evenly spread whole numbers in [low, high)."""
    return Drawn("whole", shape, dtype, low, high)


def bits(*shape: int) -> Drawn:
    """True and false, evenly."""
    return Drawn("whole", shape, np.bool_, 0, 2)


def order(*shape: int, dtype: Any = np.int64) -> Drawn:
    """0, 1, ... along the last axis, shuffled."""
    return Drawn("order", shape, dtype)


def ints(*values: int) -> Array:
    """An int64 vector."""
    return np.array(values, np.int64)


def floats(*values: float) -> Array:
    """A float32 vector."""
    return np.array(values, np.float32)


def one(value: float, dtype: Any = np.float32) -> Array:
    """A scalar."""
    return np.array(value, dtype)


def texts(*values: str) -> Array:
    """A vector of strings."""
    return np.array(values, object)

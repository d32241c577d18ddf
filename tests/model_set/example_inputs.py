"""Example inputs for the models of the set: the same numbers on every machine."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from model_set.manifest import Entry, InputSpec

    Array = np.ndarray[Any, np.dtype[Any]]


def make_inputs(entry: Entry) -> dict[str, Array]:
    """One feed for `entry`; each input is seeded by its name."""
    return {name: _array(name, spec) for name, spec in entry.inputs.items()}


def _array(name: str, spec: InputSpec) -> Array:
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return _values(random, spec.shape, spec.values).astype(spec.type)


def _values(
    random: np.random.Generator, shape: tuple[int, ...], values: str | Mapping[str, int]
) -> Array:
    match values:
        case "normal":
            return np.asarray(random.standard_normal(shape))
        case {"below": int(limit)}:
            return np.asarray(random.integers(0, limit, shape))
        case {"constant": int(value)}:
            return np.full(shape, value)
    raise ValueError(f"values {values!r}, expected 'normal', 'below' or 'constant'")

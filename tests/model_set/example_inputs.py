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
        case "text_line":
            return _text_line(random, shape)
        case {"below": int(limit)}:
            return np.asarray(random.integers(0, limit, shape))
        case {"constant": int(value)}:
            return np.full(shape, value)
    raise ValueError(f"values {values!r}, expected 'normal', 'text_line', 'below' or 'constant'")


def _text_line(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A dark picture [N, C, H, W] with one line of strong black and white structure.

    A detector that sees nothing but noise answers with sigmoids around 1e-5, which differ by
    more than a thousandth between two builds of one engine; here it finds something.
    """
    batch, _, height, width = shape
    picture = np.full(shape, -1.5)
    cells = random.random((batch, 1, height * 3 // 64, width * 3 // 8)) > 0.5
    line = np.where(cells, 2.0, -2.0).repeat(2, axis=2).repeat(2, axis=3)
    top, left = height * 5 // 16, width // 8
    picture[:, :, top : top + line.shape[2], left : left + line.shape[3]] = line
    return picture

"""Provider option `reshape_input`, which several EPs have: shapes of inputs as text."""

from __future__ import annotations

import re

from ort_lite.status import InvalidArgument

RESHAPE_INPUT = "reshape_input"
EXAMPLE = "images[1,3,320,320],ids[1..8,64]"

Bound = tuple[int, int]
"""Smallest and largest size of a dimension; equal for a static one."""

_SHAPE = r"\s*([^\[\],;]+)\[([^\[\]]*)\]\s*(?:,|$)"


def parse_shapes(text: str) -> dict[str, tuple[Bound, ...]]:
    """Input names to bounds for each of their dimensions.

    Raises:
        InvalidArgument: The text is not of the form of `EXAMPLE`.
    """
    bounds: dict[str, tuple[Bound, ...]] = {}
    shape = re.compile(_SHAPE)  # here, for few sessions have the option
    at = 0
    while at < len(text):
        match = shape.match(text, at)
        if match is None:
            raise InvalidArgument(f"{RESHAPE_INPUT} is '{text}', expected {EXAMPLE}")
        bounds[match[1].strip()] = tuple(
            _parse_bound(dim, text) for dim in match[2].split(",") if dim
        )
        at = match.end()
    return bounds


def _parse_bound(dim: str, text: str) -> Bound:
    low, dots, high = dim.strip().partition("..")
    try:
        bound = (int(low), int(high if dots else low))
    except ValueError as exc:
        raise InvalidArgument(
            f"{RESHAPE_INPUT} is '{text}': '{dim}' is not a size, expected n or low..high"
        ) from exc
    if not 1 <= bound[0] <= bound[1]:
        raise InvalidArgument(f"{RESHAPE_INPUT} is '{text}': '{dim}' is not a range of sizes")
    return bound

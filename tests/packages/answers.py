"""How far two answers of a program differ."""

from __future__ import annotations

from typing import Any

RELATIVE = 2e-3
"""Of the larger number. onnxruntime with and without its optimisations differs by 1.4e-3 in the
logits of ukis-csmask (onnxruntime 1.31.1); boxes and probabilities are computed from such."""
SMALLEST = 1e-2
"""Numbers below differ as if they were this large: probabilities close to 0."""


def difference(expected: Any, found: Any, where: str = "answer") -> str:
    """The first place where the answers are not the same, with both values; "" if they are equal.

    Numbers with a fraction are the same up to `RELATIVE`, all others when they are equal.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        if expected.keys() != found.keys():
            return f"{where} has the keys {sorted(found)}, not {sorted(expected)}"
        parts = [(expected[key], found[key], f"{where}[{key!r}]") for key in expected]
        return next(filter(None, (difference(*part) for part in parts)), "")
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return f"{where} has {len(found)} items, not {len(expected)}"
        pairs = enumerate(zip(expected, found, strict=True))
        places = (difference(a, b, f"{where}[{i}]") for i, (a, b) in pairs)
        return next(filter(None, places), "")
    if expected == found or _is_close(expected, found):
        return ""
    return f"{where} is {_short(found)}, not {_short(expected)}"


def _is_close(expected: Any, found: Any) -> bool:
    if not isinstance(expected, float) or not isinstance(found, (int, float)):
        return False
    if expected != expected:  # NaN
        return found != found
    return abs(expected - found) <= RELATIVE * max(abs(expected), abs(found), SMALLEST)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}..."

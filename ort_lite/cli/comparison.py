"""Compares two sets of outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One output against its reference.

    Attributes:
        absolute: Largest difference of two elements; inf if they cannot be compared.
        relative: `absolute` over the reference's largest magnitude.
        identical: Whether all bits are equal, including those of NaN.
        problem: Why they cannot be compared, or "".
    """

    output: str
    absolute: float
    relative: float
    identical: bool
    problem: str = ""


def compare_outputs(
    ours: Mapping[str, object], reference: Mapping[str, object]
) -> tuple[Difference, ...]:
    """One result for each output of either side."""
    names = dict.fromkeys([*ours, *reference])
    return tuple(_compare(name, ours.get(name), reference.get(name)) for name in names)


def _compare(name: str, ours: object, reference: object) -> Difference:
    if isinstance(ours, list) and isinstance(reference, list) and len(ours) == len(reference):
        pairs = zip(ours, reference, strict=True)
        return _worst_difference(
            name, [_compare(f"{name}.{i}", a, b) for i, (a, b) in enumerate(pairs)]
        )
    if ours is None or reference is None:
        missing = "the model has no such output" if ours is None else "the reference lacks it"
        return _incomparable_difference(name, missing)
    if not isinstance(ours, np.ndarray) or not isinstance(reference, np.ndarray):
        return _incomparable_difference(
            name, f"{type(ours).__name__} against {type(reference).__name__}"
        )
    if ours.shape != reference.shape:
        return _incomparable_difference(name, f"shape {ours.shape} against {reference.shape}")
    if ours.dtype.kind in "OUST" or reference.dtype.kind in "OUST":
        same = ours.astype(str).tolist() == reference.astype(str).tolist()
        return _of(name, 0.0 if same else float("inf"), 1.0, identical=same)
    if ours.dtype != reference.dtype:
        return _incomparable_difference(name, f"type {ours.dtype} against {reference.dtype}")
    identical = ours.tobytes() == reference.tobytes()
    if identical:
        return _of(name, 0.0, 1.0, identical=True)
    if ours.dtype.kind in "iu":
        return _integers(name, ours, reference)
    return _numbers(name, _widen(ours), _widen(reference))


def _integers(name: str, ours: Array, reference: Array) -> Difference:
    """Compare without float64, in which neighbours beyond 2**53 are equal."""
    larger, smaller = np.maximum(ours, reference), np.minimum(ours, reference)
    distances = larger.astype(np.uint64) - smaller.astype(np.uint64)  # exact: it wraps twice
    largest = float(np.abs(reference.astype(np.float64)).max())
    return _of(name, float(distances.max()), largest, identical=False)


def _numbers(name: str, ours: Array, reference: Array) -> Difference:
    usual = np.isfinite(ours) & np.isfinite(reference)
    # Infinities and NaNs are equal to themselves and infinitely far from all else.
    strange_differ = ~usual & ~((ours == reference) | (np.isnan(ours) & np.isnan(reference)))
    if strange_differ.any():
        return _of(name, float("inf"), 1.0, identical=False)
    if not usual.any():
        return _of(name, 0.0, 1.0, identical=False)
    largest = float(np.abs(reference[usual]).max())
    return _of(name, float(np.abs(ours - reference)[usual].max()), largest, identical=False)


def _widen(array: Array) -> Array:
    """Numbers in which differences do not lose small values."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _of(name: str, absolute: float, largest: float, *, identical: bool) -> Difference:
    if absolute == 0:
        relative = 0.0
    else:
        relative = absolute / largest if largest > 0 else float("inf")
    return Difference(output=name, absolute=absolute, relative=relative, identical=identical)


def _incomparable_difference(name: str, problem: str) -> Difference:
    inf = float("inf")
    return Difference(output=name, absolute=inf, relative=inf, identical=False, problem=problem)


def _worst_difference(name: str, parts: list[Difference]) -> Difference:
    if not parts:
        return _of(name, 0.0, 1.0, identical=True)
    worst = max(parts, key=lambda part: part.relative)
    return Difference(
        output=name,
        absolute=max(part.absolute for part in parts),
        relative=worst.relative,
        identical=all(part.identical for part in parts),
        problem=worst.problem,
    )

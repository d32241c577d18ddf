"""Kernels of operators on tensors of strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.regular_expressions import full_matcher
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo


def texts(items: Sequence[str], shape: tuple[int, ...]) -> Array:
    """Strings as the object array that holds a string tensor."""
    result = np.empty(len(items), object)
    result[:] = items
    return result.reshape(shape)


def _concat(_: KernelInfo) -> KernelFn:
    def concat(a: Array, b: Array) -> Array:
        left, right = np.broadcast_arrays(a, b)
        pairs = zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)
        return texts([x + y for x, y in pairs], left.shape)

    return concat


def _split(info: KernelInfo) -> KernelFn:
    """ONNX StringSplit-20: parts of each string, filled up with empty ones; their numbers."""
    delimiter = info.attr("delimiter") or None
    limit = info.attr("maxsplit", -1)

    def split(x: Array) -> tuple[Array, Array]:
        parts = [item.split(delimiter, limit) for item in x.reshape(-1).tolist()]
        counts = [len(part) for part in parts]
        width = max(counts, default=0)
        filled = [item for part in parts for item in (*part, *[""] * (width - len(part)))]
        return texts(filled, (*x.shape, width)), np.array(counts, np.int64).reshape(x.shape)

    return split


def _full_match(info: KernelInfo) -> KernelFn:
    """ONNX RegexFullMatch-20."""
    try:
        matches = full_matcher(info.attr("pattern"))
    except ValueError as exc:
        raise ValueError(f"RegexFullMatch: {exc}") from exc

    def full_match(x: Array) -> Array:
        is_match = [matches(item) for item in x.reshape(-1).tolist()]
        return np.array(is_match, np.bool_).reshape(x.shape)

    return full_match


def _case_function(action: str) -> Callable[[str], str]:
    if action == "LOWER":
        return str.lower
    if action == "UPPER":
        return str.upper
    if action == "NONE":
        return str
    raise ValueError(f"case_change_action is '{action}', expected LOWER, UPPER or NONE")


def _normalizer(info: KernelInfo) -> KernelFn:
    """ONNX StringNormalizer-10: stop words dropped, case changed; never empty.

    The locale has no effect: Python's case conversion is Unicode's for any language.
    """
    change = _case_function(info.attr("case_change_action", "NONE"))
    exact = bool(info.attr("is_case_sensitive", 0))
    stops = set(info.attr("stopwords", []))
    folded = stops if exact else {word.lower() for word in stops}

    def normalize(x: Array) -> Array:
        if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
            raise ValueError(
                f"Input dimensions are either[C > 0] or [1][C > 0] allowed, found {list(x.shape)}"
            )
        words = x.reshape(-1).tolist()
        kept = [w for w in words if (w if exact else w.lower()) not in folded]
        result = [change(w) for w in kept] or [""]
        return texts(result, (len(result),) if x.ndim == 1 else (1, len(result)))

    return normalize


KERNELS: tuple[KernelDef, ...] = (
    kernel("StringConcat", since=(20, 20))(_concat),
    kernel("StringSplit", since=(20, 20))(_split),
    kernel("RegexFullMatch", since=(20, 20))(_full_match),
    kernel("StringNormalizer", since=(10, 10))(_normalizer),
)

"""Whether the CPU has the instructions that numpy was compiled with.

numpy's wheels for x86-64 need x86-64-v2 from release 2.4 on (SSE4.2, POPCNT: CPUs since 2009).
Without them `import numpy`, or onnx or ml_dtypes on top of it, ends the process with SIGILL. The
features are asked of libc, which has them from CPUID; nothing is imported that would need them.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, c_uint32
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

V2: Mapping[str, int] = {
    "SSE3": 0,
    "SSSE3": 9,
    "CMPXCHG16B": 13,
    "SSE4.1": 19,
    "SSE4.2": 20,
    "POPCNT": 23,
}
"""Bits of ECX of CPUID leaf 1, which x86-64-v2 demands (x86-64 psABI)."""
_ECX = 2
_FEATURES = "__x86_get_cpuid_feature_leaf"


def missing_instructions(features: int) -> tuple[str, ...]:
    """Names of what x86-64-v2 demands and `features`, ECX of CPUID leaf 1, does not have."""
    return tuple(name for name, bit in V2.items() if not features >> bit & 1)


def baseline_problem() -> str:
    """Why numpy cannot be imported on this CPU; "" where it can be, or libc does not say."""
    features = _features()
    missing = () if features is None else missing_instructions(features)
    if not missing:
        return ""
    return (
        f"this CPU lacks {', '.join(missing)}, which numpy 2.4 and newer is compiled with "
        "(x86-64-v2, CPUs since 2009; virtual machines have it with CPU type host or x86-64-v2)"
    )


def _features() -> int | None:
    """ECX of CPUID leaf 1; None on another system, or with a libc before glibc 2.33."""
    if sys.platform != "linux":
        return None
    try:
        leaf = ctypes.CDLL(None)[_FEATURES]
    except (OSError, AttributeError):
        return None
    leaf.argtypes, leaf.restype = (c_uint32,), POINTER(c_uint32)
    features: int = leaf(0)[_ECX]
    return features

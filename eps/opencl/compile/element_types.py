"""Element types that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

C_TYPES: Mapping[str, str] = {
    "float32": "float",
    "float64": "double",
    "int8": "char",
    "uint8": "uchar",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "bool": "uchar",
}
"""numpy's names of them, in OpenCL C."""

HALF = "float16"
"""Of tensors that `HalfCast` and the kernels of caches read and write, without arithmetic in it."""
HALF_OPERATORS = frozenset((("", "Cast"), ("com.microsoft", "GroupQueryAttention")))
"""Domain and name of the operators whose kernels have such inputs or outputs."""

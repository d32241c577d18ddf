"""Casts between float32 and float16, as an operation of the kernel graph."""

from __future__ import annotations

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.ir import Op


@dataclass(eq=False, slots=True)
class HalfCast(Op):
    """inputs[0], float32 or float16, in the other of these types; to the nearest, ties to even."""

"""Casts between float32 and float16, which OpenCL has without arithmetic in float16."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Code, Kernel, load_packed, store_packed
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.half_op import HalfCast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

ROW = 64
"""Elements that a unit of work converts, or a part of it that divides the tensor."""


def half_cast_kernel(op: HalfCast, step: PlacedOp, target: Target) -> Kernel:
    """A unit of work is some neighbours; both tensors are plain."""
    x, y = step.inputs[0], step.output
    size = op.output.size
    vector = gcd(size, target.vector)
    row = gcd(size, max(vector, ROW if target.groups is None else vector))
    code = Code()
    spread = open_units(code, size // row, size // SMALLEST_TASK, target)
    code.open(f"for (int i = u * {row}; i < u * {row} + {row}; i += {vector})")
    value = load_packed(x.buffer, "p0", f"{x.offset} + i", vector)
    code.add(*store_packed(y.buffer, "p1", f"{y.offset} + i", vector, value))
    code.close(2)
    return Kernel(code.text(), (x.buffer, y.buffer), *spread, label="cast_half_", joins=True)


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {HalfCast: half_cast_kernel}

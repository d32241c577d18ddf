"""Calls of a user's functions: every item once, in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Code, Kernel
from eps.opencl.compile.codegen.spread import open_units
from eps.opencl.compile.custom_op import CustomOp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.compile.views import View
    from eps.opencl.target import Target

ITEMS_OF_A_TASK = 512
"""Fewer are not worth a task of a CPU: an item of a user's function is taken for a few elements."""


def custom_kernel(op: CustomOp, step: PlacedOp, target: Target) -> Kernel:
    """The function, called for all items; parameters are the inputs, then the outputs."""
    views = (*step.inputs, step.output, *step.more)
    code = Code()
    spread = open_units(code, op.items, op.items // ITEMS_OF_A_TASK, target, "item")
    pointers = [_pointer(i, view) for i, view in enumerate(views)]
    code.add(f"{op.function}({', '.join(['item', *pointers, *op.numbers])});")
    code.close()
    operands = tuple(view.buffer for view in views)
    written = 1 + len(step.more)
    return Kernel(code.text(), operands, *spread, written=written, include=op.text)


def _pointer(index: int, view: View) -> str:
    return f"p{index} + {view.offset}" if view.offset else f"p{index}"


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {CustomOp: custom_kernel}

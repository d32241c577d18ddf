"""The operation of the kernel graph that calls a user's function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.ir import Op

if TYPE_CHECKING:
    from eps.opencl.compile.ir import IrTensor


@dataclass(eq=False, slots=True, kw_only=True)
class CustomOp(Op):
    """A user's function, called with the index of each item; all tensors are row-major.

    Attributes:
        function: Its name in `text`.
        text: OpenCL C that the program takes in once.
        items: How many times it is called.
        numbers: Arguments behind the tensors, in OpenCL C.
        more: Outputs after the first.
    """

    function: str
    text: str
    items: int
    numbers: tuple[str, ...]
    more: tuple[IrTensor, ...] = ()

    @property
    def outputs(self) -> tuple[IrTensor, ...]:
        """All that it makes."""
        return (self.output, *self.more)

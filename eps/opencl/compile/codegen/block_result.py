"""Results of products with weights of few bits: the operations after the product, and the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Finish, load, offset_of, store
from eps.opencl.compile.expression import Arg

if TYPE_CHECKING:
    from eps.opencl.compile.codegen.kernel import Code
    from eps.opencl.compile.decoder_op import BlockMatMul
    from eps.opencl.compile.layout import PlacedOp


class BlockResult:
    """The result as rows and columns, and the epilogue's operands, which have as many or one row.

    Attributes:
        pointer: Parameter that the result is written to.
        offset: Of the result in its buffer, in elements.
        is_finished: Whether an epilogue follows the product.
    """

    def __init__(self, op: BlockMatMul, step: PlacedOp) -> None:
        """Of a placed product, whose inputs are all plain."""
        self.pointer, self.offset = f"p{len(step.inputs)}", step.output.offset
        self.is_finished = op.epilogue is not None
        views = step.inputs[op.operands :]
        expr = Arg(0, "float32") if op.epilogue is None else op.epilogue.expr
        self._finish = Finish(expr, views, op.operands)
        self._width = step.output.shape[-1]
        self._whole = step.output.size

    @property
    def elementwise(self) -> frozenset[int]:
        """Parameters that are read only at the elements of the result that are stored."""
        return frozenset(
            self._finish.first + number
            for number, view in enumerate(self._finish.views)
            if view.is_plain and view.size == view.buffer.size == self._whole and not self.offset
        )

    def store(self, code: Code, place: tuple[str, str], lanes: int, value: str) -> None:
        """Finish `value`, the name of a vector, and store it at `place`, a row and a column."""
        row, column = (f"({text})" for text in place)
        loads = {}
        for number, view in enumerate(self._finish.views, 1):
            each = 1 if view.shape and view.shape[-1] > 1 else 0
            size = 1
            for n in view.shape:
                size *= n
            down = self._width if size == self._whole else 0
            at = offset_of([(row, down), (column, each)], view.offset)
            pointer = f"p{self._finish.first + number - 1}"
            loads[number] = load(pointer, at, each, lanes, view.buffer.dtype)
        result = self._finish.write(code, value, loads, lanes, f"{value}_")
        at = offset_of([(row, self._width), (column, 1)], self.offset)
        code.add(*store(self.pointer, at, 1, lanes, result))

"""A node as its lowering sees it: inputs as tensors, attributes as values, a place to emit to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.element_types import C_TYPES, HALF
from eps.opencl.compile.expression import Arg, Call, Expr, Literal
from eps.opencl.compile.half_op import HalfCast
from eps.opencl.compile.ir import (
    Alias,
    IrTensor,
    Op,
    Pointwise,
    Quantised,
    Reshape,
    Unsupported,
)
from ort_lite.ep import attribute_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_formats.onnx_model import Node

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = ("float32", "float64")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node during lowering.

    Attributes:
        inputs: None if an optional input is omitted.
        opset: Version of the node's domain that the model imports.
        emit: Adds an operation to the kernel graph.
    """

    node: Node
    opset: int
    inputs: tuple[IrTensor | None, ...]
    emit: Callable[[Op], None]

    def has(self, position: int) -> bool:
        """Whether an input is given."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def input(self, position: int) -> IrTensor:
        """The tensor of a required input."""
        tensor = self.inputs[position] if position < len(self.inputs) else None
        if tensor is None:
            raise Unsupported(f"input {position} is missing")
        return tensor

    def present_inputs(self) -> list[IrTensor]:
        """The inputs that are not omitted."""
        return [x for x in self.inputs if x is not None]

    def constant(self, position: int, what: str) -> Array:
        """The value of an input that must be known when compiling."""
        tensor = self.input(position)
        if tensor.constant is None:
            raise Unsupported(f"{what} is not known before the run")
        return tensor.constant

    def integers(self, position: int, what: str) -> tuple[int, ...]:
        """A constant input as integers."""
        return tuple(int(v) for v in self.constant(position, what).reshape(-1))

    def attr(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as the model says
        """An attribute as a Python value, or `default`, whose kind of value it has.

        Raises:
            Unsupported: The attribute is of another kind.
        """
        attribute = self.node.attributes.get(name)
        if attribute is None:
            return default
        value = attribute_value(attribute)
        kinds: tuple[type, ...] = (object,)
        if isinstance(default, str):
            kinds = (str,)
        elif isinstance(default, int | float):
            kinds = (int, float)
        if not isinstance(value, kinds):
            raise Unsupported(f"attribute {name} is {value!r}")
        return value

    def required_int(self, name: str) -> int:
        """An attribute without a default.

        Raises:
            Unsupported: The attribute is missing or is not a number.
        """
        value = self.attr(name)
        if not isinstance(value, int):
            raise Unsupported(f"attribute {name} is {value!r}")
        return value

    def require_float32(self, *positions: int) -> None:
        """Refuse other element types."""
        for position in positions:
            dtype = self.input(position).dtype
            if dtype != "float32":
                raise Unsupported(f"input {position} is {dtype}; this kernel takes float32")

    def pointwise(
        self, function: Callable[..., Expr], operands: Sequence[IrTensor], dtype: str = ""
    ) -> IrTensor:
        """Emit an elementwise operation.

        Args:
            function: Gets an expression for each operand and gives the result's.
            operands: Broadcast against each other; a constant of one element is a literal.
            dtype: Of the result, of the first operand where it is "".
        """
        shape = broadcast_shape(*(x.shape for x in operands))
        kept: list[IrTensor] = []
        args = [_argument(x, kept) for x in operands]
        output = IrTensor(shape, dtype or operands[0].dtype)
        require_type(output.dtype)
        self.emit(Pointwise(tuple(kept), output, function(*args)))
        return output

    def alias(self, source: IrTensor, how: Any, shape: Sequence[int]) -> IrTensor:  # noqa: ANN401 - Alias.how
        """Emit another way to see a tensor."""
        output = IrTensor(tuple(shape), source.dtype)
        self.emit(Alias((source,), output, how))
        held = source.quantised
        if held is not None and held.steps.axis is None:
            output.quantised = Quantised(self.alias(held.integers, how, shape), held.steps)
        return output

    def reshape(self, source: IrTensor, shape: Sequence[int]) -> IrTensor:
        """The tensor under another shape."""
        shape = tuple(shape)
        if shape == source.shape:
            return source
        if source.constant is not None:
            return constant(source.constant.reshape(shape))
        return self.alias(source, Reshape(shape), shape)


def _argument(tensor: IrTensor, kept: list[IrTensor]) -> Expr:
    require_type(tensor.dtype)
    if tensor.constant is not None and tensor.size == 1:
        return Literal(tensor.constant.reshape(-1)[0].item(), tensor.dtype)
    if tensor not in kept:
        kept.append(tensor)
    return Arg(kept.index(tensor), tensor.dtype)


def cast_half(node: NodeView, x: IrTensor) -> IrTensor:
    """A float16 tensor in float32, or the reverse."""
    is_half = x.dtype == HALF
    dtype = "float32" if is_half else HALF
    output = IrTensor(x.shape, dtype, single=None if is_half else x)
    node.emit(HalfCast((x,), output))
    return output


def require_type(dtype: str) -> None:
    """Refuse element types that no kernel takes."""
    if dtype not in C_TYPES:
        raise Unsupported(f"element type {dtype} has no kernels")


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """numpy's broadcasting."""
    try:
        return tuple(np.broadcast_shapes(*(tuple(s) for s in shapes)))
    except ValueError as exc:
        raise Unsupported(f"shapes {list(shapes)} do not broadcast") from exc


def constant(array: Array) -> IrTensor:
    """A tensor whose content is known."""
    return IrTensor(array.shape, array.dtype.name, np.ascontiguousarray(array).reshape(array.shape))


def call(function: str, *args: Expr, dtype: str = "") -> Call:
    """A call whose result has the type of its first argument, or `dtype`."""
    return Call(function, args, dtype or args[0].dtype)


def number(value: float, like: Expr) -> Literal:
    """A literal of the type of an expression."""
    return Literal(value, like.dtype)


def normal_axis(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise Unsupported(f"axis {axis} of rank {rank}")
    return axis + rank if axis < 0 else axis

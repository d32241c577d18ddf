"""Declared operators: how a node's shapes bind their dimension names."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from eps.opencl.custom.formulas import ShapeMismatch, compute_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeclaredTensor:
    """An input or output.

    Attributes:
        dtype: numpy's name of its element type.
        dims: Names, numbers and, of outputs, formulas; "*name" stands for any number of axes.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeclaredAttribute:
    """A number that nodes may set; `default` is None where they must."""

    name: str
    kind: str
    default: float | None


@dataclass(frozen=True, slots=True)
class Bound:
    """What the dimension names of an operator stand for in one node.

    Attributes:
        sizes: Of each name; of a "*name" the product, without the star.
        axes: Of each "*name".
    """

    sizes: dict[str, int]
    axes: dict[str, Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomOperator:
    """A declared operator.

    Attributes:
        function: Name of the function that computes one item.
        items: Formula of how many items there are; "" for an item per element of the first output.
    """

    domain: str
    op_type: str
    attributes: tuple[DeclaredAttribute, ...]
    inputs: tuple[DeclaredTensor, ...]
    outputs: tuple[DeclaredTensor, ...]
    function: str
    items: str = ""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the inputs' dimensions, as the function takes their sizes."""
        named = (dim for tensor in self.inputs for dim in tensor.dims if not dim.isdigit())
        return tuple(dict.fromkeys(named))

    def bind(self, shapes: Sequence[Shape], integers: Mapping[str, int]) -> Bound:
        """What the dimension names stand for.

        Args:
            shapes: Of the inputs.
            integers: Attributes that formulas may use.

        Raises:
            ShapeMismatch: An input has another rank or size than the declaration allows.
        """
        bound = Bound(dict(integers), {})
        for tensor, shape in zip(self.inputs, shapes, strict=True):
            _bind_tensor(tensor, shape, bound)
        return bound

    def output_shape(self, index: int, bound: Bound) -> Shape:
        """The shape of an output.

        Raises:
            ShapeMismatch: A formula gives a negative size, or divides by zero.
        """
        shape: list[int] = []
        for dim in self.outputs[index].dims:
            if dim.startswith("*"):
                shape += bound.axes[dim]
            else:
                shape.append(compute_size(dim, bound.sizes))
        return tuple(shape)

    def count_items(self, bound: Bound) -> int:
        """How many items the function is called for.

        Raises:
            ShapeMismatch: As `output_shape`.
        """
        return (
            compute_size(self.items, bound.sizes)
            if self.items
            else prod(self.output_shape(0, bound))
        )


@dataclass(frozen=True, slots=True)
class CustomKernels:
    """The operators of one text by domain and type."""

    text: str = ""
    operators: Mapping[tuple[str, str], CustomOperator] = field(default_factory=dict)


def _bind_tensor(tensor: DeclaredTensor, shape: Shape, bound: Bound) -> None:
    star = next((i for i, dim in enumerate(tensor.dims) if dim.startswith("*")), None)
    declared = f"{tensor.name}[{', '.join(tensor.dims)}]"
    many = len(shape) - len(tensor.dims) + 1
    if (star is None and len(shape) != len(tensor.dims)) or (star is not None and many < 0):
        raise ShapeMismatch(f"{list(shape)} does not have the rank of {declared}")
    rest = list(shape)
    for index, dim in enumerate(tensor.dims):
        if index == star:
            taken, rest = tuple(rest[:many]), rest[many:]
            if bound.axes.setdefault(dim, taken) != taken:
                raise ShapeMismatch(f"{list(shape)} does not fit {declared}: {dim} differs")
            bound.sizes[dim.removeprefix("*")] = prod(taken)
            continue
        size = rest.pop(0)
        expected = int(dim) if dim.isdigit() else bound.sizes.setdefault(dim, size)
        if expected != size:
            raise ShapeMismatch(f"{list(shape)} does not fit {declared}: {dim} is {expected}")

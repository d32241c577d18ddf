"""Where the size of a dimension comes from, through the nodes that exporters write for it.

PyTorch writes `x.view(-1, x.size(1), 64)` as Shape, Gather, Unsqueeze, Concat and Reshape. onnx's
inference gives the result new symbols unless it follows the elements of shapes, and then cannot
tell what is left for the -1.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from ort_lite.model.tensor_values import to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_formats.onnx_model import Dim, Node, Tensor

    Size = Dim | tuple[str, int]
    """A number, a symbol, or a value and its axis."""

MOST_FOLLOWED = 64
"""Nodes between a size and where it comes from."""
MOST_DIMENSIONS = 64
"""Of a shape; whatever a hostile model says, no value has more."""
_KEEPING = frozenset(("Identity", "Reshape", "Squeeze", "Unsqueeze"))
"""Operators that hand on the only element of their first input."""
_ALIKE = frozenset(
    {
        *("Abs", "Cast", "Clip", "DequantizeLinear", "Dropout", "Erf", "Exp", "Gelu", "Identity"),
        *("LayerNormalization", "Neg", "QuantizeLinear", "Relu", "Sigmoid", "Softmax", "Sqrt"),
        "Tanh",
    }
)
"""Operators whose first output has the shape of the first input."""
_MATRIX = 2
_ELEMENTWISE = frozenset(("Add", "Div", "Mul", "Sub"))
_AXES_OF_SLICE = 3
_ONNX_DOMAINS = frozenset(("", "ai.onnx"))


class SizeTrace:
    """Sizes that a graph reads of its values.

    Two sizes that are the same number, symbol, or axis of one value are equal in every run, but
    where a Reshape gets a size of 0 and takes another one for it.
    """

    def __init__(
        self,
        maker: Callable[[str], Node | None],
        constant: Callable[[str], Tensor | None],
        shape: Callable[[str], Sequence[Dim] | None],
    ) -> None:
        """Read a graph.

        Args:
            maker: The node that gives a value, None for inputs and constants.
            constant: The constant of a name, None for other values.
            shape: What is certain of the shape of a value, None without its rank. Symbols are
                taken for sizes that are equal wherever they occur.
        """
        self._maker = maker
        self._constant = constant
        self._shape = shape
        self._dimensions: dict[tuple[str, int], Size] = {}

    def reads_size(self, name: str) -> bool:
        """Whether a value may be one element of a shape."""
        return self._find_shape(name) is not None

    def size(self, name: str) -> Size:
        """The size that is the only element of a value; None for other values."""
        return self._size(name, MOST_FOLLOWED)

    def sizes(self, name: str) -> list[Size]:
        """The sizes of a value; [] where its rank is not known."""
        rank = len(self._dims(name) or ())
        return [self._dimension(name, axis, MOST_FOLLOWED) for axis in range(rank)]

    def target_sizes(self, node: Node) -> list[Size] | None:
        """The sizes that a Reshape is given, 0 and -1 as they are; None if they are not apart.

        A None among them is a size that comes from elsewhere.
        """
        targets = self._targets(node)
        if targets is None:
            return None
        return [self.size(each) if isinstance(each, str) else each for each in targets]

    def least(self, name: str) -> int:
        """A lower bound of the only element of a value; 0 where the element is not a size.

        Values have elements, so that sizes are at least 1. The size that is left for the -1 of a
        Reshape is at least what the other sizes leave of the numbers among the input's sizes.
        """
        size = self.size(name)
        if isinstance(size, int):
            return size
        if isinstance(size, tuple):
            return self._least_rest(*size)
        return 0 if size is None else 1

    def _size(self, name: str, depth: int) -> Size:
        read = self._find_shape(name)
        if read is None or not depth:
            return None
        shape, reader = read
        dims = self._dims(shape.inputs[0])
        if dims is None:
            return None
        axes = list(range(len(dims)))[_attribute(shape, "start") : _attribute(shape, "end")]
        if reader is not None:
            axes = self._pick(reader, axes)
        return self._dimension(shape.inputs[0], axes[0], depth - 1) if len(axes) == 1 else None

    def _find_shape(self, name: str) -> tuple[Node, Node | None] | None:
        """The Shape that a value comes from, and the node that takes an element of it."""
        reader = None
        for _ in range(MOST_FOLLOWED):
            node = self._maker(name)
            if node is None or node.domain not in _ONNX_DOMAINS or not node.inputs:
                return None
            if node.op_type == "Shape":
                return node, reader
            if node.op_type in ("Gather", "Slice") and reader is None:
                reader = node
            elif not _casts_to_int64(node) and (reader or node.op_type not in _KEEPING):
                return None
            name = node.inputs[0]
        return None

    def _pick(self, reader: Node, axes: list[int]) -> list[int]:
        """What a Gather or a Slice takes of a shape; [] if that is not known."""
        numbers = [self.number(name) for name in reader.inputs[1:]]
        if not numbers or numbers[0] is None or "" in reader.inputs:
            return []
        if reader.op_type == "Gather":
            at = numbers[0]
            return [axes[at]] if -len(axes) <= at < len(axes) else []
        begin, end, axis, step = (*numbers, *(None, 0, 1)[len(numbers) - 1 :])
        return axes[begin:end] if end is not None and axis in (0, -1) and step == 1 else []

    def number(self, name: str) -> int | None:
        """The only element of a constant of integers."""
        numbers = self._numbers(name)
        return numbers[0] if numbers is not None and len(numbers) == 1 else None

    def _numbers(self, name: str) -> list[int] | None:
        """The elements of an integer constant; None if there are more than a shape has."""
        tensor = self._constant(name)
        if tensor is None or tensor.data_type not in (DataType.INT64, DataType.INT32):
            return None
        if prod(tensor.dims) > MOST_DIMENSIONS:
            return None
        return [int(number) for number in to_numpy(tensor).flat]

    def _dimension(self, name: str, axis: int, depth: int) -> Size:
        """A size of a value whose rank is known; each is looked for once."""
        if (name, axis) not in self._dimensions:
            self._dimensions[name, axis] = self._find_dimension(name, axis, depth)
        return self._dimensions[name, axis]

    def _find_dimension(self, name: str, axis: int, depth: int) -> Size:
        dims = self._dims(name)
        known = dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None
        node = self._maker(name)
        if isinstance(known, int) or node is None or node.domain not in _ONNX_DOMAINS or not depth:
            return (name, axis) if known is None else known
        origin = None
        if name == node.outputs[0] or node.op_type == "Split":
            origin = self._origin(node, axis, depth - 1, len(dims or ()))
        return origin or known or (name, axis)

    def _origin(self, node: Node, axis: int, depth: int, rank: int) -> Size:
        """A size of a node's output, from what the node is given; None if that does not say it."""
        if node.op_type == "Transpose":
            perm = node.attributes["perm"].value if "perm" in node.attributes else None
            at = perm[axis] if isinstance(perm, tuple) and axis < len(perm) else None
            return self._dimension(node.inputs[0], at, depth) if isinstance(at, int) else None
        if node.op_type in _ALIKE or self._cuts_another_axis(node, axis, rank):
            return self._dimension(node.inputs[0], axis, depth)
        if node.op_type in _ELEMENTWISE:
            return self._broadcast(node, axis - rank, depth)
        if node.op_type == "MatMul":
            return self._row_dimension(node, axis, depth, rank)
        if node.op_type == "Gather":
            return self._picked_dimension(node, axis, depth)
        targets = self._targets(node)
        if targets is None or axis >= len(targets):
            return None
        target = targets[axis]
        if target == 0 and not _attribute(node, "allowzero"):
            return self._dimension(node.inputs[0], axis, depth)
        size = self._size(target, depth) if isinstance(target, str) else target
        return None if isinstance(size, int) and size < 1 else size

    def _row_dimension(self, node: Node, axis: int, depth: int, rank: int) -> Size:
        """A size of a product of rows by one matrix; None for the columns, and other products."""
        left, right = map(self._dims, node.inputs)
        if left is None or right is None or len(right) > _MATRIX or len(left) != rank:
            return None
        return self._dimension(node.inputs[0], axis, depth) if axis < rank - 1 else None

    def _picked_dimension(self, node: Node, axis: int, depth: int) -> Size:
        """A size of rows that are looked up in a table."""
        indices = self._dims(node.inputs[1])
        if indices is None or _attribute(node, "axis"):
            return None
        if axis < len(indices):
            return self._dimension(node.inputs[1], axis, depth)
        return self._dimension(node.inputs[0], axis - len(indices) + 1, depth)

    def _cuts_another_axis(self, node: Node, axis: int, rank: int) -> bool:
        """Whether a node takes a part of its input along other axes than this one."""
        if node.op_type == "Split":
            cut = [_attribute(node, "axis") or 0]
        elif node.op_type == "Slice" and len(node.inputs) > _AXES_OF_SLICE:
            cut = self._numbers(node.inputs[_AXES_OF_SLICE]) or []
        else:
            return False
        return bool(cut) and axis not in [at % rank for at in cut if rank]

    def _broadcast(self, node: Node, place: int, depth: int) -> Size:
        """A size of what two inputs give by broadcasting, counted from the last axis."""
        sizes: list[Size] = []
        for name in node.inputs:
            dims = self._dims(name)
            if dims is None:
                return None
            if -place <= len(dims):
                sizes.append(self._dimension(name, len(dims) + place, depth))
        others = [size for size in sizes if size != 1]
        return others[0] if len({*others}) == 1 else None

    def _targets(self, node: Node) -> Sequence[int | str] | None:
        """The sizes that a Reshape is given, numbers or values; None where they are not apart."""
        if node.op_type != "Reshape" or len(node.inputs) < 2:
            return None
        if self._constant(node.inputs[1]) is not None:
            return self._numbers(node.inputs[1])
        parts = self._maker(node.inputs[1])
        if parts is None or parts.op_type != "Concat" or parts.domain not in _ONNX_DOMAINS:
            return None
        if len(parts.inputs) > MOST_DIMENSIONS or not all(map(self._is_single, parts.inputs)):
            return None
        numbers = [self.number(part) for part in parts.inputs]
        return [
            part if number is None else number
            for part, number in zip(parts.inputs, numbers, strict=True)
        ]

    def _is_single(self, name: str) -> bool:
        dims = self._dims(name)
        return dims is not None and tuple(dims) == (1,)

    def _dims(self, name: str) -> Sequence[Dim] | None:
        tensor = self._constant(name)
        return self._shape(name) if tensor is None else tensor.dims

    def _least_rest(self, name: str, axis: int) -> int:
        """A number that what is left for the -1 of a Reshape is never below."""
        node = self._maker(name)
        parts = self._targets(node) if node is not None else None
        if node is None or parts is None or axis >= len(parts) or parts[axis] != -1:
            return 1
        rank = len(self._dims(node.inputs[0]) or ())
        sizes = [self._dimension(node.inputs[0], at, MOST_FOLLOWED) for at in range(rank)]
        for at in range(len(parts)):
            size = self._dimension(name, at, MOST_FOLLOWED)
            if at != axis and size != 1:
                if size not in sizes:
                    return 1
                sizes.remove(size)
        return prod(size for size in sizes if isinstance(size, int))


def _casts_to_int64(node: Node) -> bool:
    to = node.attributes.get("to")
    return node.op_type == "Cast" and to is not None and to.value == DataType.INT64


def _attribute(node: Node, name: str) -> int | None:
    attribute = node.attributes.get(name)
    value = attribute.value if attribute is not None else None
    return value if isinstance(value, int) else None

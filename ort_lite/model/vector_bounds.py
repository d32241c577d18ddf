"""How many elements onnx's data propagation would write down for vectors that are not shapes.

onnx follows the elements of shapes through Cast, Add, Concat and a few more. Where such a node
reads any other vector of known length, it makes a dimension of some 100 bytes for each element: a
second of audio costs megabytes, and ConstantOfShape of a large number all of the memory.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import DataType, TensorType
from ort_lite.model.bodies import bodies
from ort_lite.model.graph import declared_types
from ort_lite.model.tensor_values import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node, Tensor, ValueType

MOST_ELEMENTS = 1 << 20
PROPAGATING = frozenset(
    ("Add", "Cast", "Concat", "Gather", "Mul", "Slice", "Squeeze", "Sub", "Unsqueeze")
)
"""Operators of ONNX 1.22 whose data propagation looks at the elements of inputs."""
_BY_SHAPE = frozenset(("ConstantOfShape", "Expand", "Reshape", "Tile"))
_CEILING = 1 << 62


@dataclass(slots=True)
class _Walk:
    """Known facts about values, by name.

    Attributes:
        types: By inference without data propagation.
        numbers: The largest element of an integer vector that is followed.
        lengths: The largest length that a vector may turn out to have.
        least: The least length of a vector that is joined from several.
        elements: What propagation would write.
        longest: The largest dimension in `types`.
    """

    types: dict[str, ValueType]
    numbers: dict[str, int] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    elements: int = 0
    longest: int = 1

    def graph(self, graph: GraphDef) -> None:
        """A graph, then the bodies of its nodes."""
        types = declared_types(graph)
        for name, tensor in graph.initializers.items():
            types[name] = TensorType(tensor.data_type, tensor.dims)
            number = _largest_element(tensor)
            if number is not None:
                self.numbers[name] = number
        for value_type in types.values():
            self.longest = max([self.longest, *_sizes(value_type)])
        self.types.update(types)
        for node in graph.nodes:
            for _, body in bodies(node):
                self.graph(body)
            self.node(node)

    def node(self, node: Node) -> None:
        """Bound the outputs of a node by its inputs."""
        if node.op_type in PROPAGATING:
            self.elements += sum(self._vector(name) for name in node.inputs if name)
        if node.op_type == "Concat":
            least = min(sum(map(self._least, node.inputs)), _CEILING)
            self.least.update(dict.fromkeys(node.outputs, least))
        number = self._number(node)
        length = self._length(node)
        for name in node.outputs:
            if number is not None:
                self.numbers[name] = min(number, _CEILING)
            if length:
                self.lengths[name] = min(length, _CEILING)

    def _least(self, name: str) -> int:
        """Elements that a vector has at least."""
        value_type = self.types.get(name)
        shape = value_type.shape if isinstance(value_type, TensorType) else None
        size = shape[0] if shape is not None and len(shape) == 1 else None
        return size if isinstance(size, int) else self.least.get(name, 0)

    def _vector(self, name: str) -> int:
        """Elements of a value, if it is a vector that is not a shape; 0 if it is none."""
        if name in self.numbers:
            return 0
        value_type = self.types.get(name)
        shape = value_type.shape if isinstance(value_type, TensorType) else None
        if shape is None:
            return self.lengths.get(name, 0)
        if len(shape) != 1:
            return 0
        (size,) = shape
        return size if isinstance(size, int) else self.lengths.get(name, 0)

    def _number(self, node: Node) -> int | None:
        """The largest element of the outputs, where they are followed."""
        if node.op_type in ("Shape", "Size"):
            value_type = self.types.get(node.inputs[0]) if node.inputs else None
            return prod(_sizes(value_type)) if node.op_type == "Size" else self.longest
        if node.op_type not in PROPAGATING:
            return None
        read = node.inputs[:1] if node.op_type in ("Gather", "Slice") else node.inputs
        numbers = [self.numbers.get(name) for name in read if name]
        known = [number for number in numbers if number is not None]
        if not known or len(known) < len(numbers):
            return None
        if node.op_type == "Mul":
            return prod(known)
        return sum(known) if node.op_type in ("Add", "Sub") else max(known)

    def _length(self, node: Node) -> int:
        """The length that a vector may have which propagation alone finds; 0 for none."""
        if node.op_type == "Reshape" and any(self._least(name) > 1 for name in node.inputs[1:]):
            return 0  # a shape of several sizes: no vector
        if node.op_type in _BY_SHAPE and node.inputs:
            length = self.numbers.get(node.inputs[-1], 0)
            first = self.types.get(node.inputs[0])
            shape = first.shape if isinstance(first, TensorType) else None
            if node.op_type == "ConstantOfShape" or shape is None:
                return length
            whole = prod(d if isinstance(d, int) else self.longest for d in shape)
            return whole if node.op_type == "Reshape" else max(length, 1) * whole
        if node.op_type == "Range":
            return max((self.numbers.get(name, 0) for name in node.inputs), default=0)
        lengths = [self.lengths.get(name, 0) for name in node.inputs]
        return sum(lengths) if node.op_type == "Concat" else max(lengths, default=0)


def vector_elements(graph: GraphDef) -> int:
    """Upper bound of the elements, in time that grows with the graph's nodes.

    Args:
        graph: With the types that inference finds without data propagation.
    """
    walk = _Walk({})
    walk.graph(graph)
    return walk.elements


def is_settled(graph: GraphDef) -> bool:
    """Whether every value of a graph without bodies has a known shape: nothing is left to find."""
    known = declared_types(graph)
    for node in graph.nodes:
        if bodies(node):
            return False
        for name in node.outputs:
            value_type = known.get(name)
            if name and not (
                isinstance(value_type, TensorType)
                and value_type.shape is not None
                and all(isinstance(dim, int) for dim in value_type.shape)
            ):
                return False
    return True


def _sizes(value_type: ValueType | None) -> list[int]:
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    return [dim for dim in shape or () if isinstance(dim, int)]


def _largest_element(tensor: Tensor) -> int | None:
    """The largest element of a constant that can be a shape; None for others."""
    if tensor.data_type not in (DataType.INT64, DataType.INT32) or len(tensor.dims) > 1:
        return None
    if not isinstance(tensor.data, memoryview):
        return None
    values = to_numpy(tensor)
    return max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0

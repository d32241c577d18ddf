"""The facts about a node that support conditions use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType, TensorType

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Dim, Node, Tensor
    from eps.openvino.support.magnitudes import Magnitudes
    from ort_lite.ep import Graph


def shape_of(graph: Graph, name: str) -> tuple[Dim, ...] | None:
    """Shape of a value or constant; None if its rank is unknown."""
    constant = graph.constant(name)
    if constant is not None:
        return constant.dims
    value_type = graph.type_of(name)
    return value_type.shape if isinstance(value_type, TensorType) else None


def element_type_of(graph: Graph, name: str) -> int | None:
    """DataType number of a value or constant; None if it is unknown."""
    value_type = graph.type_of(name)
    if isinstance(value_type, TensorType):
        return value_type.elem_type
    constant = graph.constant(name)
    return constant.data_type if constant is not None else None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node in its graph.

    Attributes:
        magnitudes: Of the values of the graph.
        release: Year and number of the OpenVINO release, e.g. (2026, 4).
    """

    graph: Graph
    index: int
    magnitudes: Magnitudes
    release: tuple[int, ...] = ()

    @property
    def node(self) -> Node:
        """The node that the facts are about."""
        return self.graph.nodes[self.index]

    @property
    def opset(self) -> int:
        """Version of the node's domain that the model imports."""
        return self.graph.opset_imports.get(self.node.domain, 1)

    def has_input(self, position: int) -> bool:
        """Whether an optional input is present."""
        inputs = self.node.inputs
        return position < len(inputs) and bool(inputs[position])

    def is_output_used(self, position: int) -> bool:
        """Whether an optional output is requested."""
        outputs = self.node.outputs
        return position < len(outputs) and bool(outputs[position])

    def constant(self, position: int) -> Tensor | None:
        """The constant behind an input; None if it is omitted or computed at run time."""
        return self.graph.constant(self.node.inputs[position]) if self.has_input(position) else None

    def is_runtime(self, position: int) -> bool:
        """Whether an input is present and not a constant."""
        return self.has_input(position) and self.constant(position) is None

    def elem_type(self, position: int) -> int | None:
        """DataType number of an input; None if it is unknown."""
        if not self.has_input(position):
            return None
        return element_type_of(self.graph, self.node.inputs[position])

    def input_types(self) -> str:
        """Names of the inputs' element types, such as "FLOAT,INT64"; "" for an unknown one."""
        types = map(self.elem_type, range(len(self.node.inputs)))
        return ",".join("" if one is None else DataType(one).name for one in types)

    def shape(self, position: int) -> tuple[Dim, ...] | None:
        """Shape of an input; None if its rank is unknown."""
        if not self.has_input(position):
            return None
        return shape_of(self.graph, self.node.inputs[position])

    def number(self, name: str, default: int) -> int:
        """Value of an INT attribute; `default` if the node does not have it."""
        attribute = self.node.attributes.get(name)
        return attribute.value if attribute and isinstance(attribute.value, int) else default

    def numbers(self, name: str) -> tuple[int, ...]:
        """Values of an INTS attribute; empty if the node does not have it."""
        attribute = self.node.attributes.get(name)
        if attribute is None or not isinstance(attribute.value, tuple):
            return ()
        return tuple(v for v in attribute.value if isinstance(v, int))

    def text(self, name: str, default: str) -> str:
        """Text of a STRING attribute, other bytes replaced; `default` if the node lacks it."""
        attribute = self.node.attributes.get(name)
        value = attribute.value if attribute else None
        if not isinstance(value, bytes | memoryview):
            return default
        return str(bytes(value), "utf-8", errors="replace")

    def texts(self, name: str) -> tuple[str, ...]:
        """Texts of a STRINGS attribute, other bytes replaced; empty if the node lacks it."""
        attribute = self.node.attributes.get(name)
        if attribute is None or not isinstance(attribute.value, tuple):
            return ()
        return tuple(str(v, "utf-8", "replace") for v in attribute.value if isinstance(v, bytes))

    def attributes_among(self, *names: str) -> list[str]:
        """The names among `names` that are attributes of the node."""
        return [name for name in names if name in self.node.attributes]


def read_numbers(node: Node, name: str) -> tuple[int, ...]:
    """Integers of an attribute, or its one; none where it is absent."""
    attribute = node.attributes.get(name)
    value = () if attribute is None else attribute.value
    values = value if isinstance(value, tuple) else (value,)
    return tuple(each for each in values if isinstance(each, int))

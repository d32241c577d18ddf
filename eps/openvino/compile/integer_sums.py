"""ConvInteger and MatMulInteger whose sums become floats, without int32 between, for the CPU.

OpenVINO's CPU plug-in sums products of integers in float32 and converts the result to int32. It
converts with a reference implementation, and computes on int32 in plain layouts alone, so that
tensors are reordered before and after. In a dynamically quantised model each sum goes through int32
only to get a bias and to become float32 again.

Both forms are equal to the bit: a sum in float32 is a whole number, which int32 holds and float32
holds again. With a bias, ONNX rounds the sum of both to float32 once. So does an addition in
float32, as long as float32 holds the bias; `_is_exact` looks for that.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType, DataType, Node, TensorType
from eps.openvino.compile.byte_products import ByteProducts
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import GraphDef
    from ort_lite.ep import Graph

FLOAT_FORMS = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}
MOST_EXACT = 1 << 24
"""The whole numbers up to here are all float32."""
_MOVING = frozenset(("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity", "Transpose"))


def write_out_sums(definition: GraphDef, graph: Graph, *, in_bytes: bool = False) -> GraphDef:
    """`definition` with those integer sums in float32 whose only reader casts them to float32.

    Args:
        definition: As OpenVINO would get it.
        graph: The partition from which `definition` was made; it has the types.
        in_bytes: Whether products with constants are written for 8-bit kernels.
    """
    written = _Sums(definition, graph, in_bytes=in_bytes)
    for index, node in enumerate(definition.nodes):
        if node.op_type in FLOAT_FORMS and not node.domain:
            written.replace_sum(index, node)
    return written.result() if written.replaced else definition


class _Sums:
    """The nodes of a graph while sums are replaced.

    Attributes:
        replaced: By index the nodes that come in place of one.
    """

    def __init__(self, definition: GraphDef, graph: Graph, *, in_bytes: bool) -> None:
        self._definition, self._graph = definition, graph
        self._bytes = ByteProducts(definition) if in_bytes else None
        self.replaced: dict[int, list[Node]] = {}
        self._names = {name for node in definition.nodes for name in (*node.inputs, *node.outputs)}
        self._names |= {info.name for info in definition.inputs} | definition.initializers.keys()
        self._kept = {info.name for info in definition.outputs}
        self._readers: dict[str, list[int]] = {}
        self._makers: dict[str, Node] = {}
        for index, node in enumerate(definition.nodes):
            for name in node.inputs:
                self._readers.setdefault(name, []).append(index)
            self._makers.update(dict.fromkeys(node.outputs, node))

    def result(self) -> GraphDef:
        """The graph with all replacements."""
        nodes = [
            new
            for index, node in enumerate(self._definition.nodes)
            for new in self.replaced.get(index, [node])
        ]
        made = replace(self._definition, nodes=tuple(nodes))
        return made if self._bytes is None else self._bytes.add_constants(made)

    def replace_sum(self, index: int, node: Node) -> None:
        """Replace one node, and the addition and the cast behind it, if both forms are equal."""
        points = (*node.inputs[2:], "", "")[:2]
        if not self._fits(node, points):
            return
        reader = self._only_reader(node.outputs[0])
        if reader is None:
            return
        after = self._definition.nodes[reader]
        if _is_cast(after):
            self.replaced[index] = self._sum_in_float(node, points, after.outputs[0])
            self.replaced[reader] = []
            return
        cast = self._only_reader(after.outputs[0]) if after.op_type == "Add" else None
        others = [name for name in after.inputs if name != node.outputs[0]]
        if cast is None or len(others) != 1 or not self._is_exact(others[0]):
            return
        if not _is_cast(self._definition.nodes[cast]):
            return
        total, bias = self._find_name(node.outputs[0]), self._find_name(others[0])
        terms = tuple(total if name == node.outputs[0] else bias for name in after.inputs)
        self.replaced[index] = self._sum_in_float(node, points, total)
        self.replaced[reader] = [
            _cast_node(others[0], bias),
            Node("Add", terms, self._definition.nodes[cast].outputs),
        ]
        self.replaced[cast] = []

    def _sum_in_float(self, node: Node, points: Sequence[str], output: str) -> list[Node]:
        nodes: list[Node] = []
        if self._bytes is not None and node.op_type == "MatMulInteger":
            rows = self._find_whole(node.inputs[0])
            weights = self._bytes.read_weights(node.inputs[1], points[1]) if rows else None
            if weights is not None:
                point = self._in_float(points[0], nodes) if points[0] else ""
                return [*nodes, *self._bytes.multiply(rows, point, weights, output)]
        operands = []
        for name, point in zip(node.inputs, points, strict=False):
            operand = self._in_float(name, nodes)
            if point:
                zero = self._in_float(point, nodes)
                difference = self._find_name(name)
                nodes.append(Node("Sub", (operand, zero), (difference,)))
                operand = difference
            operands.append(operand)
        kind = FLOAT_FORMS[node.op_type]
        return [*nodes, Node(kind, tuple(operands), (output,), attributes=node.attributes)]

    def _in_float(self, name: str, nodes: list[Node]) -> str:
        """An integer operand as float32: the float it was cast from, or a cast in `nodes`."""
        if whole := self._find_whole(name):
            return whole
        nodes.append(_cast_node(name, output := self._find_name(name)))
        return output

    def _find_whole(self, name: str) -> str:
        """The whole numbers of float32 that uint8 ones were cast from; "" if they were not."""
        cast = self._makers.get(name)
        if cast is not None and cast.op_type == "Cast" and self._is_whole(cast.inputs[0]):
            return cast.inputs[0]
        return ""

    def _is_whole(self, name: str) -> bool:
        """Whether a float is a step or a zero point as DynamicQuantizeLinear is written out.

        These are whole numbers in [0, 255].
        """
        maker = self._makers.get(name)
        if maker is None or maker.op_type not in ("Clip", "Round"):
            return False
        inner = self._makers.get(maker.inputs[0])
        if inner is None:
            return False
        if maker.op_type == "Round":
            return inner.op_type == "Clip" and self._is_byte_range(inner)
        rounded = [self._makers.get(term) for term in inner.inputs]
        whole = all(term is not None and term.op_type == "Round" for term in rounded)
        return inner.op_type == "Add" and whole and self._is_byte_range(maker)

    def _is_byte_range(self, clip: Node) -> bool:
        bounds = [self._definition.initializers.get(name) for name in clip.inputs[1:]]
        values = [to_numpy(bound) for bound in bounds if bound is not None]
        return [value.tolist() for value in values] == [0.0, 255.0]

    def _fits(self, node: Node, points: Sequence[str]) -> bool:
        """Whether zero points broadcast as they are: one number, or one for each column."""
        for place, point in enumerate(points):
            if not point:
                continue
            shape = self._shape_of(point)
            if shape is None:
                return False
            columns = place == 1 and node.op_type == "MatMulInteger" and len(shape) == 1
            if not (prod(shape) == 1 and len(shape) <= 1) and not columns:
                return False
        return True

    def _shape_of(self, name: str) -> tuple[int, ...] | None:
        constant = self._definition.initializers.get(name)
        if constant is not None:
            return tuple(constant.dims)
        value_type = self._graph.type_of(name)
        shape = value_type.shape if isinstance(value_type, TensorType) else None
        if shape is None or not all(isinstance(dim, int) for dim in shape):
            return None
        return tuple(dim for dim in shape if isinstance(dim, int))

    def _only_reader(self, name: str) -> int | None:
        """The node that alone reads a value, once; None if there is none, or it is an output."""
        readers = self._readers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self._kept else None

    def _is_exact(self, name: str) -> bool:
        """Whether float32 holds every element of an int32 value, as far as the graph shows it."""
        maker = self._makers.get(name)
        while maker is not None and maker.op_type in _MOVING and not maker.domain:
            name = maker.inputs[0]
            maker = self._makers.get(name)
        constant = self._definition.initializers.get(name)
        if constant is not None:
            values = to_numpy(constant)
            return values.size == 0 or int(np.abs(values.astype(np.int64)).max()) <= MOST_EXACT
        if maker is None or maker.op_type != "Cast" or maker.domain:
            return False
        source = self._graph.type_of(maker.inputs[0])
        return isinstance(source, TensorType) and source.elem_type == DataType.FLOAT

    def _find_name(self, base: str) -> str:
        number = 0
        while (name := f"{base}__float_{number}") in self._names:
            number += 1
        self._names.add(name)
        return name


def _is_cast(node: Node) -> bool:
    """Whether a node casts to float32."""
    to = node.attributes.get("to")
    return (
        node.op_type == "Cast" and not node.domain and to is not None and to.value == DataType.FLOAT
    )


def _cast_node(source: str, output: str) -> Node:
    to = Attribute("to", AttributeType.INT, DataType.FLOAT)
    return Node("Cast", (source,), (output,), attributes={"to": to})

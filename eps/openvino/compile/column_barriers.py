"""Keeps OpenVINO from applying constants for channels to the columns of a matrix product.

The CPU plug-in computes arithmetic behind a product by constant weights in its kernel. In free
shapes of four dimensions or more, a constant for each channel, [C, 1, 1], is then taken for one of
each column if there are as many (2026.4.1); so is a BatchNormalization. A maximum with minus
infinity, which changes no number, keeps them apart. The product comes second, or NaN would be
lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.compile.normalisation_barriers import LOWEST, element_type
from eps.openvino.compile.walks import walk_back
from eps.openvino.support.node_facts import shape_of

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Dim, GraphDef, Node
    from ort_lite.ep import Graph

PRODUCT = "MatMul"
"""Part of the names of products by weights."""
ARITHMETIC = ("Add", "Sub", "Mul", "Div")
BATCHES = "BatchNormalization"
BETWEEN = (
    *(*ARITHMETIC, BATCHES, "Abs", "Cast", "Clip", "DequantizeLinear", "Dropout", "Elu", "Erf"),
    *("Exp", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Max", "Min", "Mish"),
    *("Neg", "PRelu", "Pow", "QuantizeLinear", "Relu", "Reshape", "Sigmoid", "Softplus", "Sqrt"),
    *("Squeeze", "Sum", "Swish", "Tanh", "Transpose", "Unsqueeze"),
)
"""Operators that the product's kernel may compute, too, or that move no element."""
SMALLEST_RANK = 4


def keep_channels(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph with a Max before each constant of channels; itself where there is none.

    Args:
        definition: To be rewritten; products may be what other rewritings made.
        graph: The same, or before other nodes of it were rewritten; knows the types.
    """
    chains = _Chains(definition, graph)
    writer = NodeWriter(definition, "channels")
    changed = False
    for node in definition.nodes:
        place = chains.find_place(node)
        if place is None:
            writer.nodes.append(node)
            continue
        inputs = list(node.inputs)
        kind = element_type(graph, inputs[place])
        if kind in LOWEST:
            changed = True
            lowest = writer.constant(kind, (), LOWEST[kind])
            inputs[place] = writer.add("Max", lowest, inputs[place])
        writer.nodes.append(replace(node, inputs=tuple(inputs)))
    return writer.finish(definition) if changed else definition


def _is_apart(node: Node) -> bool:
    """Whether a node is neither a product nor part of its kernel."""
    return PRODUCT not in node.op_type and node.op_type not in BETWEEN


class _Chains:
    """What stands between the products of a graph and its constants for channels."""

    def __init__(self, definition: GraphDef, graph: Graph) -> None:
        self._graph = graph
        self._constants = definition.initializers
        self._makers = {name: node for node in definition.nodes for name in node.outputs if name}

    def find_place(self, node: Node) -> int | None:
        """Index of the input that may be a product, and that a constant for channels meets."""
        if node.domain or (node.op_type != BATCHES and node.op_type not in ARITHMETIC):
            return None
        if node.op_type == BATCHES:
            dims = self._dims_of(node.inputs[1])
            count = dims[0] if dims else None
            return 0 if self._may_be_columns(node.inputs[0], count) else None
        for place, constant in ((0, node.inputs[1]), (1, node.inputs[0])):
            if not self._is_constant(constant):
                continue
            dims = self._dims_of(constant)
            sizes = [(i, size) for i, size in enumerate(dims or ()) if size != 1]
            if dims is not None and (
                len(sizes) != 1 or len(dims) - sizes[0][0] < SMALLEST_RANK - 1
            ):
                continue
            if self._may_be_columns(node.inputs[place], sizes[0][1] if sizes else None):
                return place
        return None

    def _may_be_columns(self, name: str, count: Dim) -> bool:
        """Whether a product may have so many columns, as the second of four dimensions has."""
        shape = shape_of(self._graph, name)
        if shape is not None:
            if len(shape) < SMALLEST_RANK or all(isinstance(size, int) for size in shape):
                return False
            if isinstance(shape[-1], int) and isinstance(count, int) and shape[-1] != count:
                return False
        return self._is_behind_product(name)

    def _is_behind_product(self, name: str) -> bool:
        """Whether a value is a product, or made of one by what its kernel may compute, too."""
        before = walk_back(self._makers, (name,), _is_apart)
        return any(PRODUCT in node.op_type for node in before)

    def _is_constant(self, name: str) -> bool:
        """Whether a value is a constant, or computed from constants alone."""
        todo = [name]
        while todo:
            each = todo.pop()
            if not each or each in self._constants:
                continue
            maker = self._makers.get(each)
            if maker is None or not maker.inputs:
                return False
            todo.extend(maker.inputs)
        return True

    def _dims_of(self, name: str) -> tuple[Dim, ...] | None:
        constant = self._constants.get(name)
        return constant.dims if constant is not None else shape_of(self._graph, name)

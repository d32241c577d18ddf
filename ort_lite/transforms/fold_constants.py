"""Constant folding: nodes that read only constants become initializers, within bounds."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import GraphDef, TensorType, ValueInfo
from ctx_formats.tensor_size import element_bits
from ort_lite.model.bodies import bodies
from ort_lite.model.tensor_values import from_numpy
from ort_lite.session_log import get_logger
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.subexpressions import NONDETERMINISTIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.onnx_model import Node, Tensor, ValueType
    from ort_lite.transforms.mutable_graph import MutableGraph

    Evaluate = Callable[[GraphDef, Mapping[str, int]], Sequence[object] | None]

log = get_logger(__name__)

MAX_OUTPUT = 1 << 28
"""Bytes of one folded constant, where the session's options say nothing else."""
FREE_GROWTH = 1 << 16
"""A constant may be this much larger than what it is made of."""
TOTAL_GROWTH = 1 << 24
"""So much may the constants of one graph grow altogether."""
TOTAL_READ = 1 << 28
"""So many bytes of constants may be read a second time and more often: a few megabytes of weights
and thousands of nodes that reduce them would take minutes."""

KEPT = frozenset(("DequantizeLinear", "DynamicQuantizeLinear"))
"""Quantised weights stay what they are: EPs compute with them, and they are smaller. One element
is a factor or a summand, and becomes a number."""


@dataclass(slots=True)
class Folder:
    """Folds the constants of one graph after the other.

    Attributes:
        evaluate: Computes the outputs of a graph without inputs; None if it cannot.
        max_output: Bytes of one folded constant.
        growth: Bytes that constants have grown so far.
        read_again: Bytes of constants that further nodes have read.
    """

    evaluate: Evaluate
    max_output: int = MAX_OUTPUT
    growth: int = field(default=0)
    read_again: int = field(default=0)

    def transform(self, graph: MutableGraph) -> int:
        """Compute what can be computed now; returns how many nodes that were.

        The results are those of the EP that `evaluate` uses. A node that fails stays where it
        is, and so do random nodes, bodies, graph outputs, anything but dense tensors, results
        of unknown size and results that are much larger than what they are made of.
        """
        chosen = self._choose_nodes(graph)
        if not chosen:
            return 0
        made = {name: i for i in chosen for name in graph.node(i).outputs if name}
        inside = set(chosen)
        outputs = [
            name
            for name in made
            if graph.is_pinned(name) or not inside.issuperset(graph.users(name))
        ]
        if not outputs:
            return 0
        values = self._compute(graph, chosen, outputs)
        if values is None:
            return 0
        for index in reversed(chosen):
            graph.remove(index)
        for name, value in values.items():
            graph.initializers[name] = from_numpy(value, name)
        return len(chosen)

    def _choose_nodes(self, graph: MutableGraph) -> list[int]:
        """Numbers of the nodes whose inputs are constants, or results of such nodes."""
        sizes: dict[str, int] = {}
        chosen = []
        for index, node in graph.living_nodes():
            if not _may_fold(graph, node):
                continue
            read: dict[str, int] = {}
            for name in node.inputs:
                size = sizes.get(name) if name else 0
                tensor = graph.constant(name) if size is None else None
                if size is None and tensor is None:
                    break
                read[name] = size if size is not None else _tensor_bytes(tensor)
            else:
                outputs = {name: _most_bytes(graph, node, name) for name in node.outputs if name}
                if self._admit(graph, read, list(outputs.values())):
                    sizes |= {name: size or 0 for name, size in outputs.items()}
                    chosen.append(index)
        return chosen

    def _admit(
        self, graph: MutableGraph, read: Mapping[str, int], outputs: Sequence[int | None]
    ) -> bool:
        """Whether a node may be folded.

        Its results take the place of the constants that it reads only where no other folded node
        reads them: what several read stays in memory once for each.

        Args:
            graph: The node's.
            read: Bytes of its inputs by name.
            outputs: Bytes of its outputs, where they are known.
        """
        total = 0
        for size in outputs:
            if size is None or size > self.max_output:
                return False
            total += size
        replaced = sum(n for name, n in read.items() if name not in graph.home(name).folded_from)
        again = sum(read.values()) - replaced
        growth = max(total - replaced, 0)
        if total > max(sum(read.values()), FREE_GROWTH) or self.growth + growth > TOTAL_GROWTH:
            return False
        if self.read_again + again > TOTAL_READ:
            return False
        self.growth += growth
        self.read_again += again
        for name in read:
            graph.home(name).folded_from.add(name)
        return True

    def _compute(
        self, graph: MutableGraph, chosen: Sequence[int], outputs: Sequence[str]
    ) -> dict[str, np.ndarray] | None:
        nodes = tuple(graph.node(i) for i in chosen)
        read = {name for node in nodes for name in node.inputs}
        constants = {n: t for n in read if n and (t := graph.constant(n)) is not None}
        definition = GraphDef(
            name="constants",
            nodes=nodes,
            inputs=(),
            outputs=tuple(ValueInfo(name, graph.type_of(name)) for name in outputs),
            initializers=constants,
            value_info={
                name: ValueInfo(name, graph.type_of(name))
                for node in nodes
                for name in node.outputs
                if name and name not in outputs
            },
        )
        values = self.evaluate(definition, graph.opset_imports)
        if values is None:
            log.debug("constants of %d nodes could not be computed", len(nodes))
            return None
        computed = dict(zip(outputs, values, strict=True))
        arrays = {n: v for n, v in computed.items() if isinstance(v, np.ndarray)}
        fit = all(fits_declaration(graph.type_of(name), array) for name, array in arrays.items())
        return arrays if fit and len(arrays) == len(computed) else None


def _may_fold(graph: MutableGraph, node: Node) -> bool:
    return (
        node.domain in ONNX_DOMAINS
        and node.op_type not in NONDETERMINISTIC
        and (node.op_type not in KEPT or _is_one_element(graph, node))
        and not bodies(node)
        and not any(name in graph.finals for name in node.outputs)
    )


def _is_one_element(graph: MutableGraph, node: Node) -> bool:
    """Whether each result is known to have one element."""
    types = [graph.type_of(name) for name in node.outputs if name]
    shapes = [t.shape if isinstance(t, TensorType) else None for t in types]
    return all(shape is not None and set(shape) <= {1} for shape in shapes)


def _tensor_bytes(tensor: Tensor | None) -> int:
    data = tensor.data if tensor is not None else None
    return data.nbytes if isinstance(data, memoryview) else 0


def _most_bytes(graph: MutableGraph, node: Node, output: str) -> int | None:
    """Bytes that an output has at most, where inference tells.

    PyTorch makes a range of numbers as NonZero of as many ones: the values decide its size, which
    is at most an index of 8 bytes in each dimension for each element (ONNX NonZero-13).
    """
    if node.op_type != "NonZero":
        return _bytes(graph, output)
    constant = graph.constant(node.inputs[0])
    read = graph.type_of(node.inputs[0])
    shape = constant.dims if constant is not None else getattr(read, "shape", None)
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return None
    return 8 * len(shape) * prod(shape)


def _bytes(graph: MutableGraph, name: str) -> int | None:
    """Bytes of a tensor of numbers whose every dimension is known."""
    value_type = graph.type_of(name)
    if not isinstance(value_type, TensorType) or value_type.shape is None:
        return None
    try:
        bits = element_bits(value_type.elem_type)
    except ValueError:
        return None
    for dim in value_type.shape:
        if not isinstance(dim, int) or dim < 0:
            return None
        bits *= dim
    return -(-bits // 8)


def fits_declaration(value_type: ValueType | None, array: np.ndarray) -> bool:
    """Whether a result is what inference said; a model that says something else keeps its nodes.

    Args:
        value_type: A tensor of unknown rank may be anything.
        array: The result.
    """
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    return shape is None or (
        len(shape) == array.ndim
        and all(
            dim == size or not isinstance(dim, int)
            for dim, size in zip(shape, array.shape, strict=True)
        )
    )

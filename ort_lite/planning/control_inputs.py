"""Inputs of a graph whose values, not just shapes, decide which branches a run takes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, TensorType
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.subexpressions import NONDETERMINISTIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import ValueInfo
    from ort_lite.model.graph import Graph

MAX_VALUES = 8
"""Elements of an input that may decide: a rate, a flag, a mode; more are data."""
MAX_NODES = 256
"""Nodes between the inputs and a condition that are followed."""
_DECIDING = frozenset((DataType.BOOL, DataType.INT32, DataType.INT64))
_SHAPE_READERS = frozenset(("Shape", "Size"))


def find_control_inputs(graph: Graph) -> frozenset[str]:
    """Names of inputs on which the condition of an If depends, besides shapes and constants.

    A condition that depends on other data settles nothing, nor does one inside a loop that depends
    on the loop.

    Args:
        graph: Of a session; its weights may be gone.
    """
    names: set[str] = set()
    _visit(graph, (), names)
    return frozenset(names)


def may_have_random_nodes(graph: Graph) -> bool:
    """Whether a node, here or in a body, may give something else for the same inputs."""
    return any(
        node.op_type in NONDETERMINISTIC
        or any(may_have_random_nodes(body) for body in graph.bodies(index).values())
        for index, node in enumerate(graph.nodes)
    )


def is_fixed(info: ValueInfo) -> bool:
    """Whether every run has a tensor of one shape here."""
    shape = info.type.shape if isinstance(info.type, TensorType) else None
    return shape is not None and all(isinstance(dim, int) and dim >= 0 for dim in shape)


def _visit(graph: Graph, around: Sequence[Graph], names: set[str]) -> None:
    scopes = (graph, *around)
    for index, node in enumerate(graph.nodes):
        if node.op_type == "If" and node.domain in ONNX_DOMAINS and node.inputs:
            names.update(_Slice().follow(node.inputs[0], scopes) or ())
        for body in graph.bodies(index).values():
            _visit(body, scopes, names)


class _Slice:
    """What one condition depends on."""

    def __init__(self) -> None:
        self._visited: set[tuple[int, str]] = set()

    def follow(self, name: str, scopes: Sequence[Graph]) -> set[str] | None:
        """Inputs of the outermost graph that a value depends on by value; None for other data.

        Args:
            name: Of a value in the first of `scopes`.
            scopes: Graphs from the innermost one out.
        """
        graph, *around = scopes
        key = (len(scopes), name)
        if not name or key in self._visited:
            return set()
        self._visited.add(key)
        if len(self._visited) > MAX_NODES:
            return None
        index = graph.producer(name)
        if index is not None:
            return self._follow_node(graph, index, scopes)
        for info in graph.inputs:
            if info.name == name:
                return {name} if not around and _may_decide(info) else None
        if name in graph.captured:
            return self.follow(name, around)
        return set()  # a constant

    def _follow_node(self, graph: Graph, index: int, scopes: Sequence[Graph]) -> set[str] | None:
        node = graph.nodes[index]
        if node.domain not in ONNX_DOMAINS or node.op_type in NONDETERMINISTIC:
            return None
        if node.op_type in _SHAPE_READERS:
            return set()
        if graph.bodies(index):
            return None
        results: set[str] = set()
        for source in node.inputs:
            names = self.follow(source, scopes)
            if names is None:
                return None
            results |= names
        return results


def _may_decide(info: ValueInfo) -> bool:
    if not is_fixed(info) or not isinstance(info.type, TensorType):
        return False
    sizes = [dim for dim in info.type.shape or () if isinstance(dim, int)]
    return info.type.elem_type in _DECIDING and prod(sizes) <= MAX_VALUES

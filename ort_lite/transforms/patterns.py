"""Small questions that fusions ask about the neighbours of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node
    from ort_lite.transforms.mutable_graph import MutableGraph

    Found = tuple[int, Node]


def find_maker(graph: MutableGraph, name: str, *operators: str) -> Found | None:
    """The node of ai.onnx that makes `name`, if it is one of `operators`."""
    maker = graph.maker(name)
    return maker if maker is not None and _is(maker[1], operators) else None


def read_by(graph: MutableGraph, name: str, *operators: str) -> Found | None:
    """The only node that reads `name`, and nothing else does, if it is one of `operators`."""
    users = graph.users(name)
    if graph.is_pinned(name) or len(users) != 1:
        return None
    node = graph.node(users[0])
    return (users[0], node) if _is(node, operators) else None


def other_input(node: Node, name: str) -> str | None:
    """The input of a node of two that is not `name`; None if both or neither are."""
    if len(node.inputs) != 2 or node.inputs.count(name) != 1:
        return None
    return node.inputs[1] if node.inputs[0] == name else node.inputs[0]


def number(graph: MutableGraph, name: str | None) -> float | None:
    """The value of a rank-0 or one-element rank-1 constant of floats."""
    if not name or (tensor := graph.constant(name)) is None or tensor.dims not in ((), (1,)):
        return None
    array = graph.array(name)
    if array is None or array.dtype.kind != "f":
        return None
    return float(array.reshape(-1)[0])


def is_near(value: float | None, target: float) -> bool:
    """Whether a constant is a number as float32 writes it."""
    return value is not None and abs(value - target) <= 1e-6 * abs(target)


def _is(node: Node, operators: tuple[str, ...]) -> bool:
    return node.domain in ONNX_DOMAINS and node.op_type in operators

"""How large a model's graph gets when its functions are inlined, known before they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from onnx import FunctionProto, ModelProto, NodeProto

MAX_NODES = 100_000
"""Exporters stay well below; a chain of functions that call the next one twice does not."""
MAX_CALLS_DEEP = 100
"""Functions inside functions; onnx's own bound."""

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""


def check_expansion(model: ModelProto) -> None:
    """Refuse a model whose functions call themselves, or come to too many nodes.

    Raises:
        InvalidGraph: Names the calls.
    """
    functions = {_key(f): f for f in model.functions}
    sizes: dict[FunctionKey, int] = {}
    total = 0
    for node in _nodes(model.graph.node):
        total += _size(_callee(node, functions), functions, sizes, ())
    if total > MAX_NODES:
        raise InvalidGraph(
            f"with its functions inlined the model has {total} nodes, at most {MAX_NODES} are taken"
        )


def _size(
    called: FunctionKey | None,
    functions: dict[FunctionKey, FunctionProto],
    sizes: dict[FunctionKey, int],
    path: tuple[FunctionKey, ...],
) -> int:
    """Nodes that a call becomes; 1 where nothing is inlined."""
    if called is None:
        return 1
    if called in path or len(path) >= MAX_CALLS_DEEP:
        calls = " -> ".join(_text(key) for key in (*path, called)[-4:])
        what = "call themselves" if called in path else f"are nested over {MAX_CALLS_DEEP} deep"
        raise InvalidGraph(f"the model's functions {what}: ... {calls}")
    if called not in sizes:
        sizes[called] = sum(
            _size(_callee(node, functions), functions, sizes, (*path, called))
            for node in _nodes(functions[called].node)
        )
    return sizes[called]


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """`nodes` and those in their bodies; read_model has bounded how deep those go."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body.node)


def _callee(node: NodeProto, functions: dict[FunctionKey, FunctionProto]) -> FunctionKey | None:
    key = (node.domain, node.op_type, node.overload)
    return key if key in functions else None


def _key(function: FunctionProto) -> FunctionKey:
    return (function.domain, function.name, function.overload)


def _text(key: FunctionKey) -> str:
    domain, name, overload = key
    return f"{domain}::{name}{f':{overload}' if overload else ''}"

"""How large a model's graph gets when its functions are inlined, known before they are."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from onnx import FunctionProto, ModelProto, NodeProto

MAX_NODES = 100_000
"""Exporters stay well below; a chain of functions that call the next one twice does not."""
MAX_CALLS_DEEP = 100
"""Functions inside functions; onnx's own bound."""
MAX_GROWTH = 1 << 26
"""Bytes that the graph may take beyond the model's: a function may hold or be given a large
constant, and be called thousands of times."""

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""


@dataclass(slots=True)
class _Cost:
    """The size of expanded function calls.

    Attributes:
        nodes: How many.
        size: Their bytes, without names and attributes that come from the caller.
        uses: How often each of these is written: names of inputs and outputs, and attributes
            with "@" before their names.
    """

    nodes: int = 0
    size: int = 0
    uses: Counter[str] = field(default_factory=Counter)


def check_expansion(model: ModelProto) -> None:
    """Refuse a model whose functions call themselves, or come to too many nodes or bytes.

    Raises:
        InvalidGraph: Names the calls.
    """
    functions = _Functions({_key(f): f for f in model.functions})
    whole = functions.cost(model.graph.node, (), ())
    if whole.nodes > MAX_NODES:
        raise InvalidGraph(
            f"with its functions inlined the model has {whole.nodes} nodes, at most {MAX_NODES} "
            "are taken"
        )
    most = model.ByteSize() + MAX_GROWTH
    if whole.size > most:
        raise InvalidGraph(
            f"with its functions inlined the graph takes {whole.size} bytes, at most {most} are "
            "accepted; make constants of functions that are called often initializers of the model"
        )


class _Functions:
    """A model's functions, and what a call of each costs."""

    def __init__(self, functions: Mapping[FunctionKey, FunctionProto]) -> None:
        self._functions = functions
        self._known: dict[FunctionKey, _Cost] = {}

    def cost(
        self, nodes: Iterable[NodeProto], caller_names: Iterable[str], path: tuple[FunctionKey, ...]
    ) -> _Cost:
        """Add up the nodes and bytes that `nodes` expand to.

        Args:
            nodes: Of the graph or of a function.
            caller_names: Names that the caller chooses; attributes with "@" before them.
            path: The functions that are being looked at.
        """
        total, open_names = _Cost(), frozenset(caller_names)
        for node, inside in _nodes(nodes):
            called = _callee(node, self._functions)
            if called is None:
                total.nodes += 1
                total.size += 0 if inside else node.ByteSize()
                written = (*node.input, *node.output, *_references(node))
                total.uses.update(name for name in written if name in open_names)
            else:
                self._add_call(total, node, self._cost_of_call(called, path), open_names)
        return total

    def _cost_of_call(self, called: FunctionKey, path: tuple[FunctionKey, ...]) -> _Cost:
        if called in path or len(path) >= MAX_CALLS_DEEP:
            calls = " -> ".join(_text(key) for key in (*path, called)[-4:])
            what = "call themselves" if called in path else f"are nested over {MAX_CALLS_DEEP} deep"
            raise InvalidGraph(f"the model's functions {what}: ... {calls}")
        if called not in self._known:
            function = self._functions[called]
            attributes = (*function.attribute, *(a.name for a in function.attribute_proto))
            caller_names = (*function.input, *function.output, *(f"@{name}" for name in attributes))
            self._known[called] = self.cost(function.node, caller_names, (*path, called))
        return self._known[called]

    def _add_call(
        self, total: _Cost, node: NodeProto, inner: _Cost, open_names: frozenset[str]
    ) -> None:
        function = self._functions[node.domain, node.op_type, node.overload]
        total.nodes += inner.nodes
        total.size += inner.size
        formal, actual = (*function.input, *function.output), (*node.input, *node.output)
        for name, chosen in zip(formal, actual, strict=False):
            if chosen in open_names:
                total.uses[chosen] += inner.uses[name]
            else:
                total.size += inner.uses[name] * len(chosen)
        for attribute in (*function.attribute_proto, *node.attribute):
            times = inner.uses[f"@{attribute.name}"]
            if attribute.ref_attr_name:
                total.uses[f"@{attribute.ref_attr_name}"] += times
            else:
                total.size += times * attribute.ByteSize()


def _nodes(nodes: Iterable[NodeProto], *, inside: bool = False) -> Iterator[tuple[NodeProto, bool]]:
    """`nodes` and those in their bodies, with whether they are in one.

    read_model has bounded how deep those go.
    """
    for node in nodes:
        yield node, inside
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body.node, inside=True)


def _references(node: NodeProto) -> Iterator[str]:
    return (f"@{a.ref_attr_name}" for a in node.attribute if a.ref_attr_name)


def _callee(node: NodeProto, functions: Mapping[FunctionKey, FunctionProto]) -> FunctionKey | None:
    key = (node.domain, node.op_type, node.overload)
    return key if key in functions else None


def _key(function: FunctionProto) -> FunctionKey:
    return (function.domain, function.name, function.overload)


def _text(key: FunctionKey) -> str:
    domain, name, overload = key
    return f"{domain}::{name}{f':{overload}' if overload else ''}"

"""LSTM, GRU and RNN without activations that name the defaults.

Exporters of Keras write them for both directions: Sigmoid, Tanh, Tanh, Sigmoid, Tanh, Tanh.
OpenVINO's CPU plug-in gives each direction the whole list, takes it for other activations than its
kernel has, and runs a loop instead: oskut-ws took 11.5 ms instead of 6.3 (2026.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node

DEFAULTS = {
    "GRU": (b"sigmoid", b"tanh"),
    "LSTM": (b"sigmoid", b"tanh", b"tanh"),
    "RNN": (b"tanh",),
}
"""Of LSTM-22, GRU-22 and RNN-22, and all before them; names are compared without case."""


def drop_default_activations(definition: GraphDef) -> tuple[GraphDef, list[str]]:
    """The graph without them, and a note; the graph itself where there are none."""
    nodes = tuple(map(_plain, definition.nodes))
    count = sum(mine is not theirs for mine, theirs in zip(nodes, definition.nodes, strict=True))
    if not count:
        return definition, []
    note = f"{count} recurrent nodes without a list of default activations, with which OpenVINO"
    return replace(definition, nodes=nodes), [f"{note} would run a loop"]


def _plain(node: Node) -> Node:
    defaults = DEFAULTS.get(node.op_type) if node.domain == "" else None
    activations = node.attributes.get("activations")
    if defaults is None or activations is None or not isinstance(activations.value, tuple):
        return node
    names = tuple(bytes(item).lower() for item in activations.value if isinstance(item, bytes))
    if not names or names != defaults * (len(names) // len(defaults)):
        return node
    rest = {name: item for name, item in node.attributes.items() if name != "activations"}
    return replace(node, attributes=rest)

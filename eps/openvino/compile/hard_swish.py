"""x * HardSigmoid(x) as one HardSwish, which OpenVINO computes with the convolution before it.

onnxruntime writes HardSwish so into the models that it optimises, and its quantiser optimises
first. With the two nodes, mobile networks take twice the time and more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Node

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef
    from ort_lite.ep import Graph

HARD_SIGMOID, HARD_SWISH = "HardSigmoid", "HardSwish"
OLDEST_OPSET = 14
"""Of ai.onnx that has HardSwish."""
ALPHA, BETA = 1 / 6, 0.5
"""HardSwish-14 is x * HardSigmoid(x) with these."""
DEFAULT_ALPHA, DEFAULT_BETA = 0.2, 0.5
"""HardSigmoid-6."""
ROUNDING = 1e-6
"""Relative, of an attribute in float32."""


def join_hard_swish(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph with HardSwish for each such pair; itself where there is none.

    Args:
        definition: To be rewritten.
        graph: The same, or before other nodes of it were rewritten.
    """
    if graph.opset_imports.get("", 1) < OLDEST_OPSET:
        return definition
    outputs = {info.name for info in definition.outputs}
    makers = {name: place for place, node in enumerate(definition.nodes) for name in node.outputs}
    nodes: list[Node | None] = list(definition.nodes)
    for place, node in enumerate(definition.nodes):
        if node.op_type != "Mul" or node.domain or len(node.inputs) != 2:
            continue
        for x, name in (node.inputs, node.inputs[::-1]):
            maker = makers.get(name)
            gate = None if maker is None else definition.nodes[maker]
            if gate is None or not _is_gate_of(gate, x) or name in outputs:
                continue
            if maker is not None and len(graph.consumers(name)) == 1:
                nodes[maker] = None
                nodes[place] = Node(HARD_SWISH, (x,), node.outputs, name=node.name)
    kept = tuple(node for node in nodes if node is not None)
    return replace(definition, nodes=kept) if len(kept) < len(nodes) else definition


def _is_gate_of(node: Node, x: str) -> bool:
    """Whether a node is the HardSigmoid of x that HardSwish is made of."""
    if node.op_type != HARD_SIGMOID or node.domain or node.inputs[0] != x:
        return False
    alpha, beta = (
        read_number(node, "alpha", DEFAULT_ALPHA),
        read_number(node, "beta", DEFAULT_BETA),
    )
    return abs(alpha - ALPHA) <= ROUNDING * ALPHA and abs(beta - BETA) <= ROUNDING * BETA


def read_number(node: Node, name: str, default: float) -> float:
    """An attribute of a node, or what it is by default."""
    attribute = node.attributes.get(name)
    value = attribute.value if attribute is not None else default
    return value if isinstance(value, float) else default

"""Common subexpressions: equal small constants, and equal nodes of them, are kept once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, GraphDef, SparseTensor, Tensor
from ort_lite.model.bodies import bodies
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.rules import GraphTransformer

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node
    from ort_lite.transforms.mutable_graph import MutableGraph

SHARED_BYTES = 1 << 10
"""Larger constants are not compared with each other."""

NONDETERMINISTIC = frozenset(
    (
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    )
)
"""Operators of ai.onnx that may give something else for the same inputs."""


def _share_constants(graph: MutableGraph) -> int:
    """Let nodes read the first of equal constants; the others become unused."""
    first: dict[object, str] = {}
    count = 0
    for name, tensor in list(graph.initializers.items()):
        if graph.constant(name) is None or not graph.users(name):
            continue
        key = _tensor_key(tensor)
        kept = first.setdefault(key, name) if key is not None else name
        if kept != name:
            graph.redirect(name, kept)
            count += 1
    return count


def _eliminate(graph: MutableGraph) -> int:
    """Take out each node that computes what an earlier one has computed.

    Users come behind makers, so each is rewritten once, however many of its inputs are merged.
    """
    first: dict[object, int] = {}
    renamed: dict[str, str] = {}
    merged: list[int] = []
    for index in range(len(graph.nodes)):
        node = graph.nodes[index]
        if node is None:
            continue
        if not renamed.keys().isdisjoint(node.inputs):
            node = replace(node, inputs=tuple(renamed.get(name, name) for name in node.inputs))
            graph.replace(index, node)
        key = _node_key(node)
        if key is None:
            continue
        earlier = first.setdefault(key, index)
        if earlier != index and _merge(graph, earlier, index, renamed):
            merged.append(index)
    for index in merged:
        graph.remove(index)
    return len(merged)


def _merge(graph: MutableGraph, earlier: int, index: int, renamed: dict[str, str]) -> bool:
    """Let later nodes read an earlier node's outputs in place of those of node `index`."""
    kept, node = graph.node(earlier), graph.node(index)
    if any(graph.is_pinned(name) for name in node.outputs if name):
        return False
    outputs = tuple(a or b for a, b in zip(kept.outputs, node.outputs, strict=True))
    pairs = zip(node.outputs, kept.outputs, strict=True)
    renamed.update({theirs: mine for theirs, mine in pairs if theirs and mine})
    if outputs != kept.outputs:
        graph.replace(earlier, replace(kept, outputs=outputs))
    return True


def _node_key(node: Node) -> object:
    """Equal for nodes that give equal results; None for one that is left alone."""
    if node.domain not in ONNX_DOMAINS or node.op_type in NONDETERMINISTIC:
        return None
    if bodies(node):
        return None
    attributes = []
    for name in sorted(node.attributes):
        key = _attribute_key(node.attributes[name])
        if key is None:
            return None
        attributes.append((name, key))
    return node.op_type, node.inputs, len(node.outputs), tuple(attributes)


def _attribute_key(attribute: Attribute) -> object:
    value = attribute.value
    if attribute.ref_attr_name or isinstance(value, GraphDef | SparseTensor):
        return None
    if isinstance(value, Tensor):
        return _tensor_key(value)
    if isinstance(value, tuple) and any(isinstance(item, Tensor | GraphDef) for item in value):
        return None
    return attribute.type, repr(value)  # of floats it differs for -0.0 and 0.0, and NaN equals NaN


def _tensor_key(tensor: Tensor) -> object:
    data = tensor.data
    if isinstance(data, memoryview):
        if data.nbytes > SHARED_BYTES:
            return None
        return tensor.data_type, tensor.dims, bytes(data)
    return None


SHARE_CONSTANTS = GraphTransformer(name="ConstantSharing", transform=_share_constants)
ELIMINATE = GraphTransformer(name="CommonSubexpressionElimination", transform=_eliminate)

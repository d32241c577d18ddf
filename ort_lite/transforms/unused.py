"""Removes nodes, optional outputs and initializers that are not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.extension_module import onnx_extension
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.rules import GraphTransformer

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Node
    from ort_lite.transforms.mutable_graph import MutableGraph

MEANS_TRAINING = frozenset(("BatchNormalization", "Dropout"))
"""In old versions the number of outputs says whether these train."""


def _remove_nodes(graph: MutableGraph) -> int:
    count = 0
    for index in reversed(range(len(graph.nodes))):
        node = graph.nodes[index]
        if node is not None and not any(graph.is_read(name) for name in node.outputs if name):
            graph.remove(index)
            count += 1
    return count


def _remove_outputs(graph: MutableGraph) -> int:
    """Drop optional outputs at the end of a node's list that no node reads."""
    count = 0
    for index, node in graph.living_nodes():
        if len(node.outputs) < 2 or node.domain not in ONNX_DOMAINS:
            continue
        outputs = list(node.outputs)
        required = _required_outputs(node, graph.opset)
        while len(outputs) > required and not (outputs[-1] and graph.is_read(outputs[-1])):
            outputs.pop()
        if len(outputs) < len(node.outputs):
            graph.replace(index, replace(node, outputs=tuple(outputs)))
            count += 1
    return count


def _required_outputs(node: Node, opset: int) -> int:
    """How many outputs a node of this operator must have."""
    every = len(node.outputs)
    if node.op_type in MEANS_TRAINING:
        return every
    defs = onnx_extension().defs
    try:
        schema = defs.get_schema(node.op_type, opset, "")
    except defs.SchemaError:
        return every
    options = defs.OpSchema.FormalParameterOption
    needed = [i for i, formal in enumerate(schema.outputs) if formal.option != options.Optional]
    if any(schema.outputs[i].option != options.Single for i in needed):
        return every
    return max(needed, default=0) + 1


def _remove_initializers(graph: MutableGraph) -> int:
    """Drop constants that no node reads; one that is also a graph input stays."""
    unused = [
        name for name in graph.initializers if name not in graph.inputs and not graph.is_read(name)
    ]
    for name in unused:
        del graph.initializers[name]
    return len(unused)


REMOVE_NODES = GraphTransformer(name="RemoveUnusedNodes", transform=_remove_nodes)
REMOVE_OUTPUTS = GraphTransformer(name="RemoveUnusedOutputs", transform=_remove_outputs)
REMOVE_INITIALIZERS = GraphTransformer(
    name="RemoveUnusedInitializers", transform=_remove_initializers
)

"""The EPContext nodes of a graph and of the bodies in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import TensorType
from ort_lite.ep.interface import PartitionIo
from ort_lite.model.bodies import walk_nodes

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.model.graph import Graph

OP_TYPE = "EPContext"
DOMAIN = "com.microsoft"


def is_context_node(node: Node) -> bool:
    """Whether `node` is com.microsoft::EPContext."""
    return node.op_type == OP_TYPE and node.domain == DOMAIN


def has_context_nodes(graph: GraphDef) -> bool:
    """Whether the graph or a body in it has one."""
    return any(map(is_context_node, walk_nodes(graph)))


def interface(graph: Graph, node: Node) -> PartitionIo:
    """Inputs and outputs of a node, as its graph declares them."""
    return PartitionIo(
        inputs=tuple(graph.info(name) for name in node.inputs),
        outputs=tuple(graph.info(name) for name in node.outputs),
    )


def without_output_shapes(io: PartitionIo, graph: Graph) -> PartitionIo:
    """`io` without the shapes of values that the model gives back.

    In a context of other software they are what the model's author declared, right or wrong:
    onnxruntime warns where a result has another shape. ort_lite itself writes what it knows.
    """
    final = {info.name for info in graph.outputs}
    return PartitionIo(
        inputs=io.inputs,
        outputs=tuple(
            replace(info, type=TensorType(info.type.elem_type))
            if info.name in final and isinstance(info.type, TensorType)
            else info
            for info in io.outputs
        ),
    )

"""Dropout outside training is the identity: an Identity node says so to every EP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.model.bodies import map_bodies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Node, Tensor

FIRST_WITH_TRAINING_INPUT = 12
"""Dropout-12: `training_mode` became an input. Before it a model for inference has none."""


def drop_dropout(graph: GraphDef, opset: int) -> GraphDef:
    """`graph` with each Dropout that only passes its input on turned into Identity.

    Stays as it is: a Dropout whose mask is used, and one whose `training_mode` is true
    or not a constant. Bodies are treated alike.
    """
    read = {name for node in graph.nodes for name in node.inputs}
    read |= {info.name for info in graph.outputs}
    nodes = tuple(_node(node, opset, read, graph.initializers) for node in graph.nodes)
    changed = any(new is not old for new, old in zip(nodes, graph.nodes, strict=True))
    return replace(graph, nodes=nodes) if changed else graph


def _node(node: Node, opset: int, read: set[str], constants: Mapping[str, Tensor]) -> Node:
    if node.op_type == "Dropout" and node.domain == "":
        masked = any(name in read for name in node.outputs[1:] if name)
        if not masked and not _trains(node, opset, constants):
            return replace(
                node,
                op_type="Identity",
                inputs=node.inputs[:1],
                outputs=node.outputs[:1],
                attributes={},
            )
        return node
    return map_bodies(node, lambda body: drop_dropout(body, opset))


def _trains(node: Node, opset: int, constants: Mapping[str, Tensor]) -> bool:
    """Whether the node may drop anything."""
    if opset < FIRST_WITH_TRAINING_INPUT or len(node.inputs) < 3 or not node.inputs[2]:
        return False
    mode = constants.get(node.inputs[2])
    return mode is None or not isinstance(mode.data, memoryview) or any(mode.data)

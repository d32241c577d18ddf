"""How many inputs and outputs nodes have, against the schemas of their operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.extension_module import onnx_extension
from ort_lite.model.bodies import walk_nodes
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Node

    Range = tuple[int, int, int, int]
    """The fewest and most inputs, then outputs."""

_DOMAINS = ("", "ai.onnx.ml")


def require_arity(graph: GraphDef, opset_imports: Mapping[str, int]) -> None:
    """Refuse nodes of ONNX's own operators that no schema allows; as onnxruntime, before any rule.

    Raises:
        InvalidGraph: There is one; onnxruntime's text.
    """
    known: dict[tuple[str, str], tuple[str, Range] | None] = {}
    for node in walk_nodes(graph):
        if node.domain in _DOMAINS:
            key = (node.domain, node.op_type)
            if key not in known:
                known[key] = _schema(node, opset_imports)
            schema = known[key]
            if schema is not None:
                _compare(node, *schema)


def _schema(node: Node, opset_imports: Mapping[str, int]) -> tuple[str, Range] | None:
    """Name of the operator's schema in onnx, and its bounds; None if onnx lacks the operator."""
    defs = onnx_extension().defs
    version = opset_imports.get(node.domain, 1)
    try:
        found = defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return None
    label = f"{node.domain}::{node.op_type}:{found.since_version}"
    return label, (found.min_input, found.max_input, found.min_output, found.max_output)


def _compare(node: Node, schema: str, bounds: Range) -> None:
    pairs = (("input", len(node.inputs), bounds[:2]), ("output", len(node.outputs), bounds[2:]))
    for what, count, (least, most) in pairs:
        if not least <= count <= most:
            name = f"({node.name})" if node.name else ""
            raise InvalidGraph(
                f"This is an invalid model. In Node, {node.op_type} '{node.name}', Error "
                f"Node{name} with schema({schema}) has {what} size {count} not in range "
                f"[min={least}, max={most}]."
            )

"""Nodes without the lists that no inference of types reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import AttributeType
from ort_lite.model.bodies import map_nodes

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Attribute, GraphDef, Node

KEPT_ITEMS = 64
_OPERATORS = frozenset(
    {"SVMClassifier", "SVMRegressor", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}
)
"""Not TreeEnsemble of opset 5: onnx's inference compares the lengths of its lists."""
_LABELS = "classlabels_"
"""Their number is the size of an output."""
_LISTS = (AttributeType.FLOATS, AttributeType.INTS, AttributeType.STRINGS)


def without_long_lists(graph: GraphDef) -> GraphDef:
    """`graph` with one item of the lists that make up trees and support vectors, for inference.

    A forest has millions of them, which would be written and read again with every inference.
    """
    return map_nodes(graph, _shorten)


def _shorten(node: Node) -> Node:
    if node.domain != "ai.onnx.ml" or node.op_type not in _OPERATORS:
        return node
    short = {
        name: replace(attribute, value=attribute.value[:1])
        for name, attribute in node.attributes.items()
        if isinstance(attribute.value, tuple) and _is_long(attribute)
    }
    return replace(node, attributes={**node.attributes, **short}) if short else node


def _is_long(attribute: Attribute) -> bool:
    value = attribute.value
    return (
        attribute.type in _LISTS
        and isinstance(value, tuple)
        and len(value) > KEPT_ITEMS
        and not attribute.name.startswith(_LABELS)
    )

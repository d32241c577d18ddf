"""Nodes held to the schemas of their operators: versions, attributes, inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.extension_module import onnx_extension
from ort_lite.model.bodies import walk_nodes
from ort_lite.status import Fail, InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Model, Node

    Attributes = Mapping[str, tuple[int, bool]]
    Range = tuple[int, int, int, int]
    """The fewest and most inputs, then outputs."""

CHECKED_DOMAINS = frozenset(("", "ai.onnx.ml"))
_INTERNAL = "__"
"""Attributes whose names begin so are some tool's own, and belong to no operator."""
_LONGEST_NAME = 200
"""Characters of a name in a message."""


def check_versions(model: Model) -> None:
    """Refuse operator sets newer than any known one, whose operators cannot be interpreted.

    Raises:
        Fail: The model imports one, as in ONNX Runtime.
    """
    newest = onnx_extension().defs.schema_version_map()
    for domain in CHECKED_DOMAINS & model.opset_imports.keys():
        version, known = model.opset_imports[domain], newest[domain][1]
        if version > known:
            raise Fail(
                f"Opset {version} is not known: official support for domain {domain or 'ai.onnx'} "
                f"is till opset {known}. Export the model with opset {known} or older, or install "
                "a newer onnx package."
            )


def check_attributes(model: Model) -> None:
    """Refuse nodes with attributes that their operators do not have, lack, or have of other types.

    Operators without a schema are left to the execution providers.

    Args:
        model: Its functions inlined.

    Raises:
        InvalidGraph: Naming the node and the attribute, with ONNX Runtime's words.
    """
    versions = {d: v for d, v in model.opset_imports.items() if d in CHECKED_DOMAINS}
    _Schemas(versions).check(model.graph)


class _Schemas:
    def __init__(self, versions: Mapping[str, int]) -> None:
        self._versions = versions
        self._defs = onnx_extension().defs
        self._known: dict[tuple[str, str], Attributes | None] = {}

    def check(self, graph: GraphDef) -> None:
        for node in walk_nodes(graph):
            if node.domain in self._versions:
                known = self._attributes(node)
                if known is not None:
                    _check_node(node, known)

    def _attributes(self, node: Node) -> Attributes | None:
        key = (node.domain, node.op_type)
        if key not in self._known:
            try:
                schema = self._defs.get_schema(
                    node.op_type, self._versions[node.domain], node.domain
                )
                attributes = {
                    name: (a.type.value, a.required) for name, a in schema.attributes.items()
                }
                self._known[key] = attributes
            except self._defs.SchemaError:
                self._known[key] = None
        return self._known[key]


def _check_node(node: Node, known: Attributes) -> None:
    for name, attribute in node.attributes.items():
        if name not in known:
            if name.startswith(_INTERNAL):
                continue
            raise _invalid_node_error(
                node, f"Unrecognized attribute: {name[:_LONGEST_NAME]} for operator {node.op_type}"
            )
        expected = known[name][0]
        if expected and attribute.type != expected:
            raise _invalid_node_error(
                node,
                f"Mismatched attribute type in '{node.name[:_LONGEST_NAME]} : {name}'. Expected: "
                f"'{type(attribute.type)(expected).name}', actual: '{attribute.type.name}'",
            )
    for name, (_, required) in known.items():
        if required and name not in node.attributes:
            raise _invalid_node_error(node, f"Required attribute '{name}' is missing.")


def _invalid_node_error(node: Node, error: str) -> InvalidGraph:
    where = f'("{node.name[:_LONGEST_NAME]}", {node.op_type}, "{node.domain}")'
    return InvalidGraph(f"This is an invalid model. In Node, {where}, Error {error}")


def require_arity(graph: GraphDef, opset_imports: Mapping[str, int]) -> None:
    """Refuse nodes of ONNX's own operators that no schema allows; as onnxruntime, before any rule.

    Raises:
        InvalidGraph: There is one; onnxruntime's text.
    """
    known: dict[tuple[str, str], tuple[str, Range] | None] = {}
    for node in walk_nodes(graph):
        if node.domain in CHECKED_DOMAINS:
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
        op_schema = defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return None
    label = f"{node.domain}::{node.op_type}:{op_schema.since_version}"
    return label, (
        op_schema.min_input,
        op_schema.max_input,
        op_schema.min_output,
        op_schema.max_output,
    )


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

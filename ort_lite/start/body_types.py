"""Types of the inputs of Loop and Scan bodies that a model leaves out, from what is passed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType, SequenceType, TensorType, ValueInfo
from ort_lite.model.bodies import map_bodies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import GraphDef, Node, ValueType

    Types = Mapping[str, ValueType | None]

_ITERATION = TensorType(DataType.INT64, ())
_CONDITION = TensorType(DataType.BOOL, ())


def declare_body_inputs(graph: GraphDef, outer: Types | None = None) -> GraphDef:
    """`graph` with a type for each input of a Loop's or Scan's body; itself if none is missing.

    A state variable may change its shape between iterations, so the types have none. Types of
    values inside a body come from inference afterwards.

    Args:
        graph: Its types inferred.
        outer: Types of the values around it.
    """
    types: dict[str, ValueType | None] = dict(outer or {})
    for name, tensor in graph.initializers.items():
        types[name] = TensorType(tensor.data_type, tensor.dims)
    for info in (*graph.value_info.values(), *graph.outputs, *graph.inputs):
        types[info.name] = info.type
    nodes = tuple(_declare(node, types) for node in graph.nodes)
    unchanged = all(new is old for new, old in zip(nodes, graph.nodes, strict=True))
    return graph if unchanged else replace(graph, nodes=nodes)


def _declare(node: Node, types: Types) -> Node:
    passed = _list_passed(node, types)

    def declare(body: GraphDef) -> GraphDef:
        if passed is not None:
            missing = [info.type is None for info in body.inputs]
            if any(missing) and len(passed) == len(body.inputs):
                inputs = (
                    ValueInfo(info.name, kind) if is_missing else info
                    for info, kind, is_missing in zip(body.inputs, passed, missing, strict=True)
                )
                body = replace(body, inputs=tuple(inputs))
        return declare_body_inputs(body, types)

    return map_bodies(node, declare)


def _list_passed(node: Node, types: Types) -> Sequence[ValueType | None] | None:
    """Types of what a node passes to its body, without shapes; None if it has no such body."""
    arguments = [_without_shape(types.get(name)) for name in node.inputs]
    if node.domain not in {"", "ai.onnx"}:
        return None
    if node.op_type == "Loop":
        return [_ITERATION, _CONDITION, *arguments[2:]]  # ONNX Loop: M, cond, v_initial
    return arguments if node.op_type == "Scan" else None  # since Scan-9: states, then scan inputs


def _without_shape(kind: ValueType | None) -> ValueType | None:
    if isinstance(kind, TensorType):
        return TensorType(kind.elem_type, None)
    if isinstance(kind, SequenceType):
        return SequenceType(_without_shape(kind.elem))
    return kind

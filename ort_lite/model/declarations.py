"""Compares the types that a graph declares with those that inference finds on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import GraphDef, SparseTensorType, TensorType, ValueInfo
from ort_lite.model.bodies import map_bodies, map_paired_bodies
from ort_lite.model.declared_types import (
    contradict,
    merge_types,
    same_sizes,
    shape_text,
    shown_type,
    symbols_of,
)
from ort_lite.model.graph import declared_types
from ort_lite.model.type_text import type_text
from ort_lite.session_log import get_logger
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Node, ValueType

    Types = Mapping[str, ValueType]

log = get_logger(__name__)

_FED = 2
"""Of a Loop and of its body, the first input that the caller gives and the body gives back."""


def fill_types(inferred: GraphDef, declared: GraphDef) -> GraphDef:
    """`inferred` with declared types where inference was blind; itself where it was nowhere."""
    certain = symbols_of(declared.inputs)
    known, said = declared_types(inferred), declared_types(declared)
    fixed = {info.name for info in inferred.inputs} | inferred.initializers.keys()
    better = {}
    for name, value_type in said.items():
        if name in fixed:
            continue
        kept = merge_types(known.get(name), value_type, certain)
        if kept is not None and kept != known.get(name):
            better[name] = ValueInfo(name, kept)
    nodes = tuple(
        map_paired_bodies(mine, theirs, fill_types)
        for mine, theirs in zip(inferred.nodes, declared.nodes, strict=True)
    )
    if not better and all(new is old for new, old in zip(nodes, inferred.nodes, strict=True)):
        return inferred
    final = {info.name for info in inferred.outputs}
    return replace(
        inferred,
        nodes=nodes,
        value_info={
            **inferred.value_info,
            **{name: info for name, info in better.items() if name not in final},
        },
        outputs=tuple(better.get(info.name, info) for info in inferred.outputs),
    )


def show_outputs(declared: GraphDef, inferred: GraphDef, makers: Types) -> GraphDef:
    """`inferred` with outputs as a session shows them; a wrong declaration is a warning.

    Args:
        declared: As the file has it.
        inferred: The same with inferred types, filled in.
        makers: Types of what no node makes: inputs and constants.

    Raises:
        Fail: A declared element type is not that of the value (onnxruntime's text).
    """
    _check_elements(inferred, declared)
    certain = symbols_of(declared.inputs)
    known = {**declared_types(inferred), **makers}
    infos = dict(inferred.value_info)
    outputs = []
    for info in declared.outputs:
        value_type = known.get(info.name)
        final = makers.get(info.name) or shown_type(info.type, value_type, certain)
        if contradict(info.type, value_type):
            log.warning(
                "MergeShapeInfo: output '%s' is %s by inference and declared as %s. "
                "The inferred one is used",
                info.name,
                shape_text(value_type),
                shape_text(info.type),
            )
        infos.pop(info.name, None)
        # A sparse constant is a tensor to onnx's inference.
        sparse = isinstance(final, SparseTensorType)
        if value_type is not None and not sparse and not same_sizes(value_type, final):
            infos[info.name] = ValueInfo(info.name, value_type)
        outputs.append(replace(info, type=final))
    return replace(inferred, value_info=infos, outputs=tuple(outputs))


def _check_elements(inferred: GraphDef, declared: GraphDef) -> None:
    known, said = declared_types(inferred), declared_types(declared)
    for node in inferred.nodes:
        for name in node.outputs:
            mine, theirs = said.get(name), known.get(name)
            if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType):
                continue
            if mine.elem_type and theirs.elem_type and mine.elem_type != theirs.elem_type:
                raise Fail(
                    f"Type Error: Type ({type_text(mine)}) of output arg ({name}) of node "
                    f"({node.name}) does not match expected type ({type_text(theirs)})."
                )


def loosen_shapes(declared: GraphDef, inferred: GraphDef, outer: Types | None = None) -> GraphDef:
    """`declared` with the shapes that Loops are fed, where their bodies declare others.

    Such a value begins as what the node is fed and goes on as what the body gives back; what
    that is follows from this.

    Args:
        declared: As the file has it.
        inferred: The same with inferred types.
        outer: Types of the graphs around them.

    Returns:
        `declared` itself where there are none.
    """
    known = {**(outer or {}), **declared_types(inferred), **_constants(inferred)}

    def loosen_body(mine: GraphDef, theirs: GraphDef) -> GraphDef:
        return loosen_shapes(mine, theirs, known)

    nodes = tuple(
        _loosen_node(map_paired_bodies(mine, theirs, loosen_body), known)
        for mine, theirs in zip(declared.nodes, inferred.nodes, strict=True)
    )
    same = all(new is old for new, old in zip(nodes, declared.nodes, strict=True))
    return declared if same else replace(declared, nodes=nodes)


def _constants(graph: GraphDef) -> dict[str, ValueType]:
    return {n: TensorType(t.data_type, t.dims) for n, t in graph.initializers.items()}


def _loosen_node(node: Node, known: Types) -> Node:
    if node.op_type != "Loop" or node.domain != "":
        return node

    def change(body: GraphDef) -> GraphDef:
        inputs = list(body.inputs)
        for index in range(_FED, min(len(inputs), len(node.inputs))):
            mine, fed = inputs[index].type, known.get(node.inputs[index])
            if not isinstance(mine, TensorType) or not isinstance(fed, TensorType):
                continue
            if contradict(mine, fed):
                right = TensorType(mine.elem_type, fed.shape)
                inputs[index] = replace(inputs[index], type=right)
        return body if inputs == list(body.inputs) else replace(body, inputs=tuple(inputs))

    return map_bodies(node, change)

"""Operators through the function that their schema says they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
import onnx.inliner
import onnx.shape_inference

from ctx_formats.model_reader import read_model
from eps.cpu.node_model import node_model
from eps.cpu.schemas import find_schema
from ort_lite.ep import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep import KernelInfo, OpIdentifier


def function_graph(
    op: OpIdentifier, info: KernelInfo, opset_imports: Mapping[str, int]
) -> Graph | None:
    """The node's body as a graph; None if it has none for its attributes and types.

    Inputs are i0, i1, ... and outputs o0, o1, ..., the omitted ones left out.
    """
    schema = find_schema(op.domain, op.op_type, op.since_version)
    if schema is None or not schema.has_body:
        return None
    model = node_model(info, opset_imports)
    inlined = onnx.inliner.inline_selected_functions(
        model, [(op.domain, op.op_type)], exclude=False, inline_schema_functions=True
    )
    if any((n.domain, n.op_type) == (op.domain, op.op_type) for n in inlined.graph.node):
        return None
    typed = onnx.shape_inference.infer_shapes(inlined)
    read = read_model(memoryview(typed.SerializeToString()))
    return Graph(read.graph, {**opset_imports, **read.opset_imports})

"""Operators through the function that their schema says they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx
import onnx.inliner
import onnx.shape_inference

from ctx_formats.model_reader import read_model
from eps.cpu.node_model import node_model
from eps.cpu.schemas import find_schema
from ort_lite.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.kernel_registry import KernelInfo
    from ort_lite.kernel_type_str import OpIdentifier


def has_function_body(op: OpIdentifier) -> bool:
    """Whether the schema of `op` gives a body, fixed or depending on the node."""
    schema = find_schema(op.domain, op.op_type, op.since_version)
    if schema is None:
        return False
    # onnx's stub lacks both properties.
    fixed = schema.has_function  # type: ignore[attr-defined]
    return bool(fixed or schema.has_context_dependent_function)  # type: ignore[attr-defined]


def function_graph(
    op: OpIdentifier, info: KernelInfo, opset_imports: Mapping[str, int]
) -> Graph | None:
    """The node's body as a graph; None if there is none for its attributes and types.

    Inputs are i0, i1, ... and outputs o0, o1, ..., the omitted ones left out.
    """
    if not has_function_body(op):
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

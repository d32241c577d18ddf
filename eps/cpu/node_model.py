"""One node as an onnx.ModelProto, for those parts of onnx that take nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import onnx
import onnx.defs

from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import Attribute, AttributeType, GraphDef, Model, ValueInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep import KernelInfo


def node_model(info: KernelInfo, opset_imports: Mapping[str, int]) -> onnx.ModelProto:
    """A model of the node alone; its inputs are i0, i1, ..., its outputs o0, o1, ...

    An omitted input or output stays omitted. The node's attributes are given in full, the
    defaults of its operator's version included.
    """
    node = info.node
    inputs = tuple(f"i{i}" if name else "" for i, name in enumerate(node.inputs))
    outputs = tuple(f"o{i}" if name else "" for i, name in enumerate(node.outputs))
    renamed = replace(
        node,
        inputs=inputs,
        outputs=outputs,
        domain=info.domain,
        attributes={**_defaults(info), **node.attributes},
    )
    graph = GraphDef(
        name="node",
        nodes=(renamed,),
        inputs=tuple(ValueInfo(name, info.input_type(i)) for i, name in enumerate(inputs) if name),
        outputs=tuple(ValueInfo(name) for name in outputs if name),
    )
    opsets = {"": onnx.defs.onnx_opset_version(), info.domain: 1, **opset_imports}
    model = Model(graph=graph, ir_version=onnx.IR_VERSION, opset_imports=opsets)
    return onnx.load_model_from_string(model_bytes(model))


def _defaults(info: KernelInfo) -> dict[str, Attribute]:
    """The defaults as attributes; those that are tensors or lists of nothing are left out."""
    defaults = {}
    for name, value in info.defaults.items():
        attribute = _attribute(name, value)
        if attribute is not None:
            defaults[name] = attribute
    return defaults


def _attribute(name: str, value: object) -> Attribute | None:
    if isinstance(value, str):
        return Attribute(name, AttributeType.STRING, value.encode())
    if isinstance(value, int):
        return Attribute(name, AttributeType.INT, value)
    if isinstance(value, float):
        return Attribute(name, AttributeType.FLOAT, value)
    if not isinstance(value, list) or not value:
        return None
    if isinstance(value[0], str):
        texts = tuple(item.encode() for item in value)
        return Attribute(name, AttributeType.STRINGS, texts)
    kind = AttributeType.INTS if isinstance(value[0], int) else AttributeType.FLOATS
    return Attribute(name, kind, tuple(value))

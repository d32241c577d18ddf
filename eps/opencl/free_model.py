"""A partition with free dimensions as the bytes of an ONNX model, for its payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import Model, TensorType
from eps.opencl.ports import HINT
from ort_lite.graph import Graph
from ort_lite.status import EPFail, InvalidArgument, InvalidGraph
from ort_lite.tensor_values import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import ValueInfo
    from eps.opencl.ports import Signature

IR_VERSION = 10


def encoded(graph: Graph) -> bytes:
    """The partition with its weights.

    Raises:
        EPFail: It is over protobuf's 2 GiB.
    """
    model = Model(graph=graph.definition, ir_version=IR_VERSION, opset_imports=graph.opset_imports)
    try:
        return bytes(model_bytes(model))
    except FormatError as exc:
        raise EPFail(f"a partition with free dimensions cannot be kept: {exc}") from exc


def decoded(data: memoryview) -> Graph:
    """What `encoded` wrote; weights are views of `data`.

    Raises:
        InvalidGraph: It is no such thing.
    """
    try:
        model = read_model(data)
        graph = Graph(model.graph, model.opset_imports)
        value_signatures((*graph.inputs, *graph.outputs))
    except (FormatError, InvalidArgument) as exc:
        raise InvalidGraph(
            f"the payload's model is damaged: {exc} (reason: {Reason.FORMAT})",
            reason=Reason.FORMAT,
            hint=HINT,
        ) from exc
    return graph


def value_signatures(infos: Sequence[ValueInfo]) -> list[Signature]:
    """Name, type and shape of inputs or outputs.

    Raises:
        FormatError: One is no tensor of a type that kernels take.
    """
    found = []
    for info in infos:
        if not isinstance(info.type, TensorType):
            raise FormatError(f"value '{info.name}'", "no tensor type", "a tensor")
        shape = info.type.shape or ()
        found.append((info.name, numpy_dtype(info.type.elem_type).name, shape))
    return found

"""A partition with free dimensions as an ONNX model, its large constants apart from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import replace
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import ExternalData, Model, TensorType
from eps.opencl.payload.format import StoredGraph
from eps.opencl.program_spec import Weight, weight_of
from ort_lite.ep import EPFail, Graph, InvalidArgument, InvalidGraph, Port, Ports, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Tensor, ValueInfo
    from eps.opencl.custom.operators import CustomKernels

IR_VERSION = 10
AWAY = "away"
"""Location of an initializer that no program will be compiled from."""
CUSTOM = "custom_kernels"
"""Metadata with the user's own operators."""
APART_FROM = 1024
"""Bytes of the smallest initializer that is stored apart."""


def store_graph(graph: Graph, *, whole: bool, custom: CustomKernels | None = None) -> StoredGraph:
    """The partition; the place of a large initializer is the location of its external data.

    Args:
        graph: With free dimensions.
        whole: Whether it can be compiled again; without, large initializers stay away.
        custom: The user's own operators, without which it could not be.

    Raises:
        EPFail: It is over protobuf's 2 GiB.
    """
    weights: dict[str, Weight] = {}
    kept: dict[str, Tensor] = {}
    for name, tensor in graph.definition.initializers.items():
        kept[name] = tensor
        if isinstance(tensor.data, memoryview) and tensor.data.nbytes >= APART_FROM:
            place = AWAY
            if whole:
                weight = weight_of(tensor.data)
                weights.setdefault(weight.digest, weight)
                place = str(list(weights).index(weight.digest))
            kept[name] = replace(tensor, data=ExternalData(place, 0, tensor.data.nbytes))
    definition = replace(graph.definition, initializers=kept)
    model = Model(
        graph=definition,
        ir_version=IR_VERSION,
        opset_imports=graph.opset_imports,
        metadata_props={CUSTOM: custom.text} if custom is not None and whole else {},
    )
    try:
        proto = memoryview(bytes(model_bytes(model)))
    except FormatError as exc:
        raise EPFail(f"a partition with free dimensions cannot be kept: {exc}") from exc
    return StoredGraph(proto, tuple(weights.values()), whole=whole)


def restore_graph(kept: StoredGraph) -> tuple[Graph, CustomKernels | None]:
    """Restore what was stored; initializers are views of the weights, or omitted.

    Raises:
        InvalidGraph: It is not a stored graph.
    """
    try:
        model = read_model(kept.proto)
        initializers = {
            name: _read_initializer(tensor, kept)
            for name, tensor in model.graph.initializers.items()
        }
        graph = Graph(replace(model.graph, initializers=initializers), model.opset_imports)
        value_ports((*graph.inputs, *graph.outputs))
        custom = _read_custom(model.metadata_props.get(CUSTOM, ""))
    except (FormatError, InvalidArgument) as exc:
        raise InvalidGraph(
            f"the payload's model is damaged: {exc} (reason: {Reason.FORMAT})",
            reason=Reason.FORMAT,
        ) from exc
    return graph, custom


def _read_custom(text: str) -> CustomKernels | None:
    if not text:
        return None
    from eps.opencl.custom.declarations import parse_custom_kernels  # noqa: PLC0415 - lazy: rare

    return parse_custom_kernels(text)


def _read_initializer(tensor: Tensor, kept: StoredGraph) -> Tensor:
    if not isinstance(tensor.data, ExternalData) or not kept.whole:
        return tensor
    place, weights = tensor.data.location, kept.weights
    if not (place.isascii() and place.isdigit() and int(place) < len(weights)):
        raise FormatError(f"initializer '{tensor.name}'", place[:40], f"one of {len(weights)}")
    data = weights[int(place)].data
    if data.nbytes != tensor.data.length:
        raise FormatError(
            f"initializer '{tensor.name}'", f"{data.nbytes} bytes", f"{tensor.data.length}"
        )
    return replace(tensor, data=data)


def value_ports(infos: Sequence[ValueInfo]) -> Ports:
    """The ports of a partition that is compiled for its values as they are declared.

    Raises:
        FormatError: One is not a tensor.
        InvalidArgument: One has a type that ONNX does not define.
    """
    ports = []
    for info in infos:
        if not isinstance(info.type, TensorType):
            raise FormatError(f"value '{info.name}'", "no tensor type", "a tensor")
        numpy_dtype(info.type.elem_type)
        ports.append(Port(frozenset((info.name,)), info.type.elem_type, info.type.shape or ()))
    return Ports.by_name(ports)

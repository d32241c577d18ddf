"""A partition's graph to an OpenVINO model, in memory."""

from __future__ import annotations

import io
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.model_writer import encode_model, model_bytes
from ctx_formats.onnx_model import ExternalData, Model, TensorType
from eps.openvino.binding import ov
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.status import EPFail, InvalidArgument

if TYPE_CHECKING:
    import openvino

    from ctx_formats.onnx_model import GraphDef
    from eps.openvino.options import OpenVINOOptions
    from ort_lite.model.graph import Graph

IR_VERSION = 10
IN_MEMORY_LIMIT = 1 << 30
"""Larger partitions go through a file: OpenVINO copies what it reads from memory."""
EXTERNAL_FROM = 1 << 16


class ConversionError(Exception):
    """OpenVINO cannot make a model of these nodes; the text says why."""


def partition_model(graph: Graph) -> Model:
    """The partition as an ONNX model of its own."""
    return Model(graph=graph.definition, ir_version=IR_VERSION, opset_imports=graph.opset_imports)


def read_model(core: openvino.Core, graph: Graph) -> openvino.Model:
    """Convert a partition.

    Raises:
        ConversionError: OpenVINO's front end refuses it.
    """
    model = partition_model(graph)
    size = sum(len(t.data) for t in graph.initializers.values() if isinstance(t.data, memoryview))
    try:
        if size < IN_MEMORY_LIMIT:
            return core.read_model(io.BytesIO(model_bytes(model)))
        return _through_file(core, model)
    except FormatError as exc:
        raise ConversionError(str(exc)) from exc
    except SDK_ERRORS as exc:
        raise ConversionError(sdk_text(exc)) from exc


def _through_file(core: openvino.Core, model: Model) -> openvino.Model:
    """Weights in a data file, which OpenVINO maps; the folder goes once they are loaded."""
    with tempfile.TemporaryDirectory(prefix="ort_lite_") as folder:
        path = Path(folder)
        with (path / "weights.bin").open("wb") as weights:
            graph = _externalised(model.graph, weights)
        with (path / "model.onnx").open("wb") as file:
            for piece in encode_model(replace(model, graph=graph)):
                file.write(piece)
        return core.read_model(str(path / "model.onnx"))


def _externalised(graph: GraphDef, weights: io.BufferedWriter) -> GraphDef:
    moved = {}
    for name, tensor in graph.initializers.items():
        if not isinstance(tensor.data, memoryview) or len(tensor.data) < EXTERNAL_FROM:
            continue
        weights.write(bytes(-weights.tell() % 64))
        where = ExternalData("weights.bin", weights.tell(), len(tensor.data))
        weights.write(tensor.data)
        moved[name] = replace(tensor, data=where)
    return replace(graph, initializers={**graph.initializers, **moved})


def fix_shapes(model: openvino.Model, graph: Graph, options: OpenVINOOptions) -> None:
    """Apply `reshape_input` to the inputs it names; check what the device demands.

    Raises:
        InvalidArgument: `reshape_input` names an input of this model with another rank.
        EPFail: The device needs static shapes and a dimension is free.
    """
    shapes = {}
    for info in graph.inputs:
        bounds = options.reshape.get(info.name)
        if bounds is None:
            continue
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        if shape is not None and len(shape) != len(bounds):
            raise InvalidArgument(
                f"reshape_input gives {info.name} {len(bounds)} dimensions, the model {len(shape)}"
            )
        shapes[info.name] = ov.PartialShape(
            [ov.Dimension(low) if low == high else ov.Dimension(low, high) for low, high in bounds]
        )
    if shapes:
        try:
            model.reshape(shapes)
        except SDK_ERRORS as exc:
            raise ConversionError(f"reshape_input: {sdk_text(exc)}") from exc
    if options.needs_static_shapes:
        _require_static(model, graph, options)


def _require_static(model: openvino.Model, graph: Graph, options: OpenVINOOptions) -> None:
    free = []
    ready = []
    for port, info in zip(model.inputs, graph.inputs, strict=False):
        if port.partial_shape.is_static:
            continue
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        free.append(f"{info.name}{list(shape) if shape is not None else ' (unknown rank)'}")
        sizes = [str(d) if isinstance(d, int) and d > 0 else "1" for d in shape or ()]
        ready.append(f"{info.name}[{','.join(sizes)}]")
    if free:
        raise EPFail(
            f"{options.device} needs static shapes and these inputs have free dimensions: "
            f"{', '.join(free)}. Fix them with provider option reshape_input, for example "
            f"reshape_input='{','.join(ready)}', or with "
            "SessionOptions.add_free_dimension_override_by_name"
        )

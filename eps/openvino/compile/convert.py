"""Converts a partition's graph to an OpenVINO model."""

from __future__ import annotations

import io
import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from ctx_formats.model_writer import encode_model, model_bytes
from ctx_formats.onnx_model import DataType, ExternalData, Model, TensorType
from ctx_formats.temporary_files import temporary_folder
from eps.openvino.compile.rewrite import EXPERTS, LOOP, QUANTIZATION, rewrite_partition
from eps.openvino.compile.rotations import keep_rotations, may_rotate
from eps.openvino.sdk.binding import ov
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.ep import EPFail, InvalidArgument, get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import openvino

    from ctx_formats.onnx_model import GraphDef, Tensor, ValueInfo
    from eps.openvino.compile.known_shapes import KnownShapes
    from eps.openvino.compile.rewrite import Rewritten
    from eps.openvino.options import OpenVINOOptions
    from ort_lite.ep import Graph

IR_VERSION = 10
FILE_FROM = 1 << 20
"""Size of weights, in bytes, from which they pass through a file: OpenVINO copies weights in memory
three times, and maps a file (ResNet-50, 100 MB: 80 ms instead of 560)."""
IN_MEMORY_LIMIT = 1 << 30
EXTERNAL_FROM = 1 << 16
ALIGNMENT = 64
EXTERNAL_TYPES = frozenset(
    (
        *(DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE),
        *(DataType.INT8, DataType.UINT8, DataType.INT32, DataType.INT64),
    )
)
"""Element types of weights that a file holds; others are rare and small and stay in the model."""
REDUCING = (QUANTIZATION, "Einsum", "Global", "Reduce")
"""Prefixes of the operators that OpenVINO's front end converts to reductions."""
MAPS_WHAT_IS_REMOVED = os.name == "posix"

log = get_logger(__name__)


class ConversionError(Exception):
    """OpenVINO cannot convert these nodes; the text says why."""


def partition_model(graph: Graph, definition: GraphDef) -> Model:
    """A partition as an ONNX model of its own, with `definition` as its graph.

    Negative sizes, by which some exporters mean "unknown", become unknown: OpenVINO knows only -1.
    """
    definition = replace(definition, inputs=tuple(map(_drop_negative_sizes, definition.inputs)))
    return Model(graph=definition, ir_version=IR_VERSION, opset_imports=graph.opset_imports)


def _drop_negative_sizes(info: ValueInfo) -> ValueInfo:
    if not isinstance(info.type, TensorType) or info.type.shape is None:
        return info
    shape = tuple(None if isinstance(dim, int) and dim < 0 else dim for dim in info.type.shape)
    return info if shape == info.type.shape else replace(info, type=replace(info.type, shape=shape))


@contextmanager
def read_model(
    core: openvino.Core, graph: Graph, rewritten: Rewritten | None = None
) -> Iterator[openvino.Model]:
    """Convert a partition, to be compiled before the context ends.

    Args:
        core: OpenVINO's.
        graph: The partition.
        rewritten: What becomes of it first; None for the rewritings that every partition gets.

    Raises:
        ConversionError: OpenVINO's front end refuses it.
    """
    rewritten = rewritten or rewrite_partition(graph)
    with ExitStack() as files:
        converted = _convert(core, partition_model(graph, rewritten.definition), graph, files)
        if rewritten.quotients:
            from eps.openvino.compile.exact_quotients import keep_quotients  # noqa: PLC0415 - lazy: rare

            keep_quotients(converted, rewritten.quotients)
        yield converted


def _convert(core: openvino.Core, model: Model, graph: Graph, files: ExitStack) -> openvino.Model:
    try:
        converted = _read_by_file(core, model, files)
        if converted is None:
            converted = core.read_model(io.BytesIO(model_bytes(model)))
    except FormatError as exc:
        raise ConversionError(str(exc)) from exc
    except SDK_ERRORS as exc:
        raise ConversionError(sdk_text(exc)) from exc
    if any(node.op_type.startswith(REDUCING) for node in graph.nodes):
        from eps.openvino.compile.reductions import keep_apart  # noqa: PLC0415 - lazy: rare

        keep_apart(converted)
    if any(node.op_type in EXPERTS for node in graph.nodes):
        from eps.openvino.compile.experts import keep_order  # noqa: PLC0415 - lazy: rare

        keep_order(converted)
    if may_rotate(graph):
        keep_rotations(converted)
    if any(node.op_type == LOOP for node in graph.nodes):
        from eps.openvino.compile.loops import keep_inputs  # noqa: PLC0415 - lazy: rare

        keep_inputs(converted)
    return converted


def _read_by_file(core: openvino.Core, model: Model, files: ExitStack) -> openvino.Model | None:
    """The model, read through a weights file; None if memory is the better way.

    OpenVINO maps the file, which is removed at once. On a system that cannot remove a mapped file,
    OpenVINO reads it while it compiles, and `files` removes it later.

    Raises:
        EPFail: Only a file will do, and it cannot be written.
    """
    external = {
        name: data
        for name, tensor in model.graph.initializers.items()
        if (data := _external_data(tensor))
    }
    size = sum(map(len, external.values()))
    if size < (FILE_FROM if MAPS_WHAT_IS_REMOVED else IN_MEMORY_LIMIT):
        return None
    try:
        with ExitStack() as own:
            folder = own.enter_context(temporary_folder("ort_lite_"))
            path = _write_model(Path(folder), model, external)
            if MAPS_WHAT_IS_REMOVED:
                return core.read_model(str(path))
            converted = core.read_model(str(path), config={"ENABLE_MMAP": False})
            files.enter_context(own.pop_all())
            return converted
    except OSError as exc:
        if size < IN_MEMORY_LIMIT:
            log.debug("OpenVINO gets the weights in memory: %s", exc)
            return None
        raise EPFail(
            f"cannot write {size} bytes of weights for OpenVINO to read: {exc}. "
            "Set TMPDIR to another folder for temporary files"
        ) from exc


def _write_model(folder: Path, model: Model, external: Mapping[str, memoryview]) -> Path:
    """Write the model and the weights in `external` to `folder`; returns the model's path."""
    tensors = dict(model.graph.initializers)
    with (folder / "weights.bin").open("wb") as weights:
        for name, data in external.items():
            weights.write(bytes(-weights.tell() % ALIGNMENT))
            where = ExternalData("weights.bin", weights.tell(), len(data))
            weights.write(data)
            tensors[name] = replace(tensors[name], data=where)
    path = folder / "model.onnx"
    with path.open("wb") as file:
        for piece in encode_model(replace(model, graph=replace(model.graph, initializers=tensors))):
            file.write(piece)
    return path


def _external_data(tensor: Tensor) -> memoryview | None:
    """A tensor's bytes, if they belong in the weights file; else None."""
    data = tensor.data
    if not isinstance(data, memoryview) or len(data) < EXTERNAL_FROM:
        return None
    return data if tensor.data_type in EXTERNAL_TYPES else None


def fix_shapes(
    model: openvino.Model,
    graph: Graph,
    options: OpenVINOOptions,
    known: KnownShapes,
) -> None:
    """Apply `reshape_input` to the inputs it names; check that the device accepts the shapes.

    Args:
        model: Of the partition.
        graph: The partition.
        options: The execution provider's.
        known: Shapes of the whole model.

    Raises:
        InvalidArgument: `reshape_input` names an input of this model with another rank.
        EPFail: The device needs static shapes, and a dimension is dynamic that `reshape_input` of
            the model's inputs would fix.
        ConversionError: The same of a value of unknown rank.
    """
    shapes = {}
    for info in graph.inputs:
        bounds = options.reshape.get(info.name)
        if bounds is None:
            if info.name in known.values:
                shapes[info.name] = ov.PartialShape(list(known.values[info.name]))
            continue
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        if shape is not None and len(shape) != len(bounds):
            raise InvalidArgument(
                f"reshape_input has {len(bounds)} dimensions for {info.name}, "
                f"the model {len(shape)}"
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
        _require_static(model, graph, options, known)


def _require_static(
    model: openvino.Model, graph: Graph, options: OpenVINOOptions, known: KnownShapes
) -> None:
    free = []
    ready = []
    unknown = []
    for port, info in zip(model.inputs, graph.inputs, strict=False):
        if port.partial_shape.is_static:
            continue
        shape = info.type.shape if isinstance(info.type, TensorType) else None
        if shape is None:
            unknown.append(info.name)
            continue
        free.append(f"{info.name}{list(shape)}")
        sizes = [str(d) if isinstance(d, int) and d > 0 else "1" for d in shape]
        ready.append(f"{info.name}[{','.join(sizes)}]")
    if free and not known.inputs_are_static:
        raise EPFail(
            f"{options.device} needs static shapes and these inputs have free dimensions: "
            f"{', '.join(free)}. Fix them with provider option reshape_input, for example "
            f'"reshape_input={",".join(ready)}", or with '
            "SessionOptions.add_free_dimension_override_by_name"
        )
    if unknown:
        raise ConversionError(
            f"{options.device} needs static shapes, and the rank of {', '.join(unknown)} is "
            "unknown; provider option reshape_input can name its shape"
        )

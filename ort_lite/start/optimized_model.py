"""Saves the transformed graph of a session: SessionOptions.optimized_model_filepath.

In ONNX or, by the name or the option, in the ORT format (docs/formats/ort.md).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.errors import FormatError
from ctx_formats.model_writer import encode_model
from ctx_formats.onnx_model import TensorType
from ctx_formats.signatures import without_signatures
from ort_lite.context.external_initializers import ExternalInitializers, write_external
from ort_lite.context.graph import context_graph
from ort_lite.model.bodies import walk_nodes
from ort_lite.session_log import get_logger
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim, GraphDef, Model, ValueInfo
    from ort_lite.options import SessionOptions
    from ort_lite.planning.prepared_graph import PreparedGraph

log = get_logger(__name__)

MIN_IR_VERSION = 8
"""Since 4 initializers need not be inputs; onnxruntime reads 8 since 2021."""
CONTRIB = "com.microsoft"
FORMAT_KEY = "session.save_model_format"
EXTERNAL_KEY = "session.optimized_model_external_initializers_file_name"
THRESHOLD_KEY = "session.optimized_model_external_initializers_min_size_in_bytes"
DEFAULT_THRESHOLD = "1024"


def write_optimized(prepared: PreparedGraph, source: Model, options: SessionOptions) -> None:
    """Write the graph that `prepared` runs as a plain model, compiled partitions as nodes.

    The file appears whole or not at all and replaces one that is there.

    Args:
        prepared: Of a plain model.
        source: That model, for what it says besides its graph.
        options: `optimized_model_filepath`; onnxruntime's entries for external initializers.

    Raises:
        Fail: It cannot be written, or is over 2 GiB without external initializers.
        InvalidArgument: The entry for the size of external initializers is not a number.
    """
    path = Path(options.optimized_model_filepath)
    model = optimized_model(prepared, source)
    chosen = options.config.get(FORMAT_KEY, "")
    if chosen == "ORT" or (not chosen and path.name.lower().endswith(".ort")):
        from ort_lite.start.ort_conversion import write_ort_file  # noqa: PLC0415 - lazy: rare

        if options.config.get(EXTERNAL_KEY):
            log.warning(
                "%s: the ORT format has no external data, %s is ignored", path, EXTERNAL_KEY
            )
        write_ort_file(model, path)
        return
    try:
        model = replace(model, graph=_move_weights_to_file(model.graph, path, options))
        pieces = encode_model(model)
        with create_sibling_file(path) as (file, temporary):
            for piece in pieces:
                file.write(piece)
        publish(temporary, path, replace=True)
    except FormatError as exc:
        raise Fail(
            f"the optimized model {path} cannot be written: {exc}. Name a file for its weights: "
            f"add_session_config_entry('{EXTERNAL_KEY}', 'weights.bin')"
        ) from exc
    except OSError as exc:
        raise Fail(f"the optimized model {path} cannot be written: {exc}") from exc


def optimized_model(prepared: PreparedGraph, source: Model) -> Model:
    """The graph that `prepared` runs as a plain model, with what `source` says besides."""
    graph = context_graph(prepared, lambda _: None)
    opsets = dict(prepared.graph.opset_imports)
    if any(node.domain == CONTRIB for node in walk_nodes(graph)):
        opsets.setdefault(CONTRIB, 1)
    return replace(
        source,
        graph=_open_dimensions(graph),
        ir_version=max(source.ir_version, MIN_IR_VERSION),
        opset_imports=opsets,
        metadata_props=without_signatures(source.metadata_props),
        functions=(),
        kernel_types=None,
    )


def _open_dimensions(graph: GraphDef) -> GraphDef:
    """Without negative sizes, some exporters' way to say that a size is not known."""

    def open_sizes(infos: Sequence[ValueInfo]) -> tuple[ValueInfo, ...]:
        return tuple(
            replace(info, type=replace(info.type, shape=tuple(map(_size, info.type.shape))))
            if isinstance(info.type, TensorType) and info.type.shape is not None
            else info
            for info in infos
        )

    return replace(graph, inputs=open_sizes(graph.inputs), outputs=open_sizes(graph.outputs))


def _size(dim: Dim) -> Dim:
    return None if isinstance(dim, int) and dim < 0 else dim


def _move_weights_to_file(graph: GraphDef, path: Path, options: SessionOptions) -> GraphDef:
    name = options.config.get(EXTERNAL_KEY, "")
    if not name:
        return graph
    text = options.config.get(THRESHOLD_KEY, DEFAULT_THRESHOLD)
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgument(f"{THRESHOLD_KEY} is '{text}', expected a number of bytes")
    return write_external(graph, ExternalInitializers(name, int(text)), path.parent, overwrite=True)

"""Blobs without large constants, which several blobs share in one file.

OpenVINO writes such a blob for a model whose constants came from an IR file: it records the offset
of each in that file (CACHE_MODE=OPTIMIZE_SIZE), and maps the file again on import (WEIGHTS_PATH).
So large constants are stored in the shared container first, and replaced in the model by constants
that a small IR declares there. Tried with OpenVINO 2026.4.1 on CPU; constants that came from ONNX,
or that are smaller than 4 KiB, came back wrong or not at all. All constants are therefore compared
byte by byte before a blob is kept. See
docs/adr/0011-shared-weights.md.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino
from openvino._offline_transformations import apply_moc_transformations

from ctx_formats.errors import FormatError
from ctx_formats.temporary_files import temporary_folder
from eps.openvino.compile.convert import ConversionError, fix_shapes, read_model
from eps.openvino.compile.known_shapes import KnownShapes
from eps.openvino.compile.rewrite import rewrite_partition
from eps.openvino.options import compile_config, weightless_config
from eps.openvino.payload.blob_header import constants_of
from eps.openvino.sdk.binding import ov
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.ep import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from eps.openvino.options import OpenVINOOptions
    from ort_lite.ep import Graph, WeightsSink

log = get_logger(__name__)

SHARED_FROM = 4096
"""Size, in bytes, of the smallest constant that is shared. OpenVINO transforms smaller ones, which
changes their values and keeps the record of their offsets."""

WORTH = 0.5
"""Largest weightless blob that is kept, as a share of the whole blob. With LSTM weights, which
OpenVINO changes while it compiles, little is saved."""

_NOTE = "WeightlessCacheAttribute_0"
_PRECISIONS = {
    **{name: name.upper() for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")},
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
}
"""Element types whose constants are shared, with their names in an IR."""


def weightless_blob(
    core: openvino.Core, graph: Graph, options: OpenVINOOptions, weights: WeightsSink
) -> bytes | None:
    """Compile a partition to a blob without its large constants, which go to `weights`.

    Compiles twice: the second time to compare an import with the whole blob.

    Returns:
        The blob; None if there are no large constants, little is saved, or OpenVINO does not
        restore the constants exactly.
    """
    try:
        with read_model(
            core, graph, rewrite_partition(graph, ieee=options.ieee, kind=options.kind)
        ) as model:
            fix_shapes(model, graph, options, KnownShapes())
            # Folds what the plug-in would fold later. Accepts only the package's Model.
            apply_moc_transformations(openvino.Model(model), cf=True)
            owners = _move_weights(core, model, weights)
            if owners is None:
                return None
            blob = _compile_blob(core, model, options, {"CACHE_MODE": "OPTIMIZE_SIZE"})
            whole = _compile_blob(core, model, options, {})
        if len(blob) > WORTH * len(whole):
            return None
        with _openable_path(weights) as path:
            restored = _export_again(core, blob, options, path)
        same = constants_of(memoryview(restored)) == constants_of(memoryview(whole))
    except (ConversionError, FormatError, *SDK_ERRORS) as exc:
        log.info("weights are not shared: %s", sdk_text(exc))
        return None
    if not same:
        log.info("weights are not shared: OpenVINO does not restore the constants exactly")
    return blob if same else None


@contextmanager
def _openable_path(weights: WeightsSink) -> Iterator[str]:
    """A path under which OpenVINO can open the weights while they are being written.

    On Windows that is a copy: OpenVINO opens no file that anybody has open for writing.
    """
    if os.name == "posix":
        yield weights.path
        return
    with temporary_folder("ort_lite_") as folder:
        path = Path(folder, "weights.bin")
        path.write_bytes(weights.view())
        yield str(path)


def _export_again(core: openvino.Core, blob: bytes, options: OpenVINOOptions, path: str) -> bytes:
    """Import a weightless blob and export it whole."""
    data = np.frombuffer(blob, np.uint8).copy()  # must live as long as what was imported
    config = weightless_config(options, path)
    compiled = core.import_model(ov.Tensor(data, shared_memory=True), options.device, config)
    exported: bytes = compiled.export_model().getvalue()
    return exported


def _compile_blob(
    core: openvino.Core, model: openvino.Model, options: OpenVINOOptions, more: dict[str, object]
) -> bytes:
    config = {**compile_config(options), **more}
    config.pop("CACHE_DIR", None)
    exported: bytes = core.compile_model(model, options.device, config).export_model().getvalue()
    return exported


def _move_weights(
    core: openvino.Core, model: openvino.Model, weights: WeightsSink
) -> object | None:
    """Replace large constants by constants of an IR whose data is the shared container.

    Returns:
        Objects that must live as long as the model; None if it has no large constants.
    """
    nodes = [node for node in model.get_ops() if node.get_type_name() == "Constant"]
    large = [node for node in nodes if _is_large(node)]
    if not large:
        return None
    places = [weights.add_weights(_bytes_of(node).data) for node in large]
    data = np.frombuffer(weights.view(), np.uint8)
    declared = core.read_model(
        _declare_constants(large, places).encode(), ov.Tensor(data, shared_memory=True)
    )
    by_name = {node.get_friendly_name(): node for node in declared.get_ops()}
    for i, node in enumerate(large):
        shared = by_name[f"c{i}"]
        shared.set_friendly_name(node.get_friendly_name())
        for port in node.output(0).get_target_inputs():
            port.replace_source_output(shared.output(0))
    for node in nodes:
        note = node.get_rt_info()
        if _NOTE in list(note):  # set by the ONNX front end: the order in which it read them
            del note[_NOTE]
    model.validate_nodes_and_infer_types()
    return data, declared


def _is_large(node: openvino.Node) -> bool:
    if node.get_element_type().to_string() not in _PRECISIONS:
        return False
    size: int = node.get_byte_size()
    return size >= SHARED_FROM


def _bytes_of(node: openvino.Node) -> np.ndarray[Any, Any]:
    data: np.ndarray[Any, Any] = np.ascontiguousarray(node.data).reshape(-1).view(np.uint8)
    return data


def _declare_constants(nodes: Sequence[openvino.Node], places: Sequence[int]) -> str:
    """An OpenVINO IR, version 11, that consists of constants alone."""
    layers, edges = [], []
    for i, (node, place) in enumerate(zip(nodes, places, strict=True)):
        kind = node.get_element_type().to_string()
        dims = [str(dim) for dim in node.shape]
        port = (
            f'<port id="0" precision="{_PRECISIONS[kind]}">'
            f"{''.join(f'<dim>{dim}</dim>' for dim in dims)}</port>"
        )
        layers.append(
            f'<layer id="{2 * i}" name="c{i}" type="Const" version="opset1">'
            f'<data element_type="{kind}" shape="{",".join(dims)}" offset="{place}" '
            f'size="{node.get_byte_size()}"/><output>{port}</output></layer>'
            f'<layer id="{2 * i + 1}" name="r{i}" type="Result" version="opset1">'
            f"<input>{port}</input></layer>"
        )
        edges.append(
            f'<edge from-layer="{2 * i}" from-port="0" to-layer="{2 * i + 1}" to-port="0"/>'
        )
    return (
        f'<?xml version="1.0"?><net name="weights" version="11"><layers>{"".join(layers)}'
        f"</layers><edges>{''.join(edges)}</edges></net>"
    )

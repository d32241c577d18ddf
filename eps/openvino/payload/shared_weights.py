"""Compiled forms whose large constants lie in a file that several of them share.

OpenVINO writes such a form of a model whose constants came from an IR file: it notes where in
that file each was (CACHE_MODE=OPTIMIZE_SIZE), and maps that file again on import
(WEIGHTS_PATH). So large constants are stored in the shared container first, and the model gets
constants that a small IR says are there. Tried with OpenVINO 2026.4.1 on CPU; constants that
came from ONNX, or that are smaller than 4 KiB, came back wrong or not at all. Whether all came
back right is therefore compared byte by byte before a form is kept. See
docs/adr/0011-shared-weights.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import openvino
from openvino._offline_transformations import apply_moc_transformations

from ctx_formats.errors import FormatError
from eps.openvino.compile.convert import ConversionError, fix_shapes, read_model
from eps.openvino.payload.blob_header import constants_of
from eps.openvino.sdk.binding import ov
from eps.openvino.sdk.config import compile_config, weightless_config
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.session_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from eps.openvino.options import OpenVINOOptions
    from ort_lite.context.shared_weights import WeightsSink
    from ort_lite.model.graph import Graph

log = get_logger(__name__)

SHARED_FROM = 4096
"""Bytes of the smallest constant that is shared. Smaller ones OpenVINO passes through
transformations that keep the note of where they were and change what they are."""

WORTH = 0.5
"""A form is kept if it is at most this part of the whole one; with LSTM weights, which OpenVINO
changes while it compiles, it is hardly smaller."""

_NOTE = "WeightlessCacheAttribute_0"
_PRECISIONS = {
    **{name: name.upper() for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")},
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
}
"""Element types whose constants are shared, and what an IR calls them."""


def weightless(
    core: openvino.Core, graph: Graph, options: OpenVINOOptions, weights: WeightsSink
) -> bytes | None:
    """The compiled form of a partition without its large constants, which go to `weights`.

    Compiles twice: the second time to compare what an import gives with what it should.

    Returns:
        None where there are no large constants, little is gained, or OpenVINO does not bring
        them back right.
    """
    try:
        with read_model(core, graph, ieee=options.ieee) as model:
            fix_shapes(model, graph, options)
            # Folds what the plug-in would fold later. Takes the package's Model and no other.
            apply_moc_transformations(openvino.Model(model), cf=True)
            held = _moved(core, model, weights)
            if held is None:
                return None
            blob = _compiled(core, model, options, {"CACHE_MODE": "OPTIMIZE_SIZE"})
            whole = _compiled(core, model, options, {})
        if len(blob) > WORTH * len(whole):
            return None
        again = _again(core, blob, options, weights.path)
        same = constants_of(memoryview(again)) == constants_of(memoryview(whole))
    except (ConversionError, FormatError, *SDK_ERRORS) as exc:
        log.info("weights are not shared: %s", sdk_text(exc))
        return None
    if not same:
        log.info("weights are not shared: OpenVINO brings constants back other than they were")
    return blob if same else None


def _again(core: openvino.Core, blob: bytes, options: OpenVINOOptions, path: str) -> bytes:
    """What the form is as a whole one."""
    data = np.frombuffer(blob, np.uint8).copy()  # must live as long as what was imported
    config = weightless_config(options, path)
    compiled = core.import_model(ov.Tensor(data, shared_memory=True), options.device, config)
    found: bytes = compiled.export_model().getvalue()
    return found


def _compiled(
    core: openvino.Core, model: openvino.Model, options: OpenVINOOptions, more: dict[str, object]
) -> bytes:
    config = {**compile_config(options), **more}
    config.pop("CACHE_DIR", None)
    found: bytes = core.compile_model(model, options.device, config).export_model().getvalue()
    return found


def _moved(core: openvino.Core, model: openvino.Model, weights: WeightsSink) -> object | None:
    """Replace large constants by constants of an IR whose data is the shared container.

    Returns:
        What must live as long as the model does; None where it has no large constants.
    """
    nodes = [node for node in model.get_ops() if node.get_type_name() == "Constant"]
    large = [node for node in nodes if _is_large(node)]
    if not large:
        return None
    places = [weights.add_weights(_bytes_of(node).data) for node in large]
    data = np.frombuffer(weights.view(), np.uint8)
    declared = core.read_model(
        _declaration(large, places).encode(), ov.Tensor(data, shared_memory=True)
    )
    by_name = {node.get_friendly_name(): node for node in declared.get_ops()}
    for i, node in enumerate(large):
        shared = by_name[f"c{i}"]
        shared.set_friendly_name(node.get_friendly_name())
        for port in node.output(0).get_target_inputs():
            port.replace_source_output(shared.output(0))
    for node in nodes:
        note = node.get_rt_info()
        if _NOTE in list(note):  # of the ONNX front end's: the order in which it read them
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


def _declaration(nodes: Sequence[openvino.Node], places: Sequence[int]) -> str:
    """An OpenVINO IR, version 11, of constants and nothing else."""
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

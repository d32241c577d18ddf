"""A model in ONNX Runtime's ORT format to a Model: bounds-checked, without copying weights.

A FlatBuffer with the identifier "ORTM": ONNX Runtime, onnxruntime/core/flatbuffers/schema/ort.fbs;
docs/formats/ort.md. Versions 1 to 6 are read. The list of edges, the recorded indices and the
argument counts follow from the nodes and are only checked; saved runtime optimizations, recorded
execution providers and the session state of versions 1 to 4 are skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.flatbuffer import Table
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import Model
from ctx_formats.ort_graph_reader import OrtGraphReader
from ctx_formats.ort_kernel_types import read_kernel_types
from ctx_formats.ort_model_error import OrtModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

IDENTIFIER = b"ORTM"
NEWEST_VERSION = 6
FIRST_WITH_KERNEL_TYPES = 5
"""Version since which a file says which types its operators' kernels are chosen by."""
MARK_OF_DEFAULTS = "com.microsoft.nchwc"
"""A domain that no model imports, and every file that ONNX Runtime saved: it resolved the model,
which gives nodes the attributes that they leave out. Our writer does both, too."""
_SMALLEST = 12
_MOST_DIGITS = 9
_NO_MODEL_VERSION = (1 << 63) - 1
"""ONNX Runtime's model version of a model that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtModel:
    """A model file in the ORT format.

    Attributes:
        version: Of the format, 1 to 6.
        model: Its kernel types are set from version 5 on, where the nodes agree on them. The
            format has no name of the graph and no functions.
        has_optimizations: Whether runtime optimizations are recorded, which nothing here applies.
    """

    version: int
    model: Model
    has_optimizations: bool


def is_ort_model(data: memoryview) -> bool:
    """Whether bytes have the identifier of the ORT format: ONNX Runtime's test."""
    return len(data) > 8 and data[4:8] == IDENTIFIER


def read_ort_model(data: memoryview, *, file: str = "") -> OrtModel:
    """Decode a model in the ORT format, in time proportional to its size without weights.

    Args:
        data: The whole file; tensors of the result are views of it.
        file: Named in errors.

    Raises:
        OrtModelError: Its content is wrong, or its version is unknown.
        FormatError: It is not a FlatBuffer of this kind.
    """
    if data.format != "B" or data.ndim != 1:
        data = data.cast("B")
    try:
        return _read(data)
    except FormatError as exc:
        raise exc.in_file(file) from exc
    except RecursionError as exc:  # depth is bounded; a caller may have used up the stack
        raise FormatError("graph", "nested too deep for this call stack", file=file) from exc


def _read(data: memoryview) -> OrtModel:
    if len(data) < _SMALLEST:
        raise FormatError("file", f"{len(data)} bytes", f"{_SMALLEST} or more")
    root = Table.root(data, IDENTIFIER)
    version = _read_version(root)
    table = root.table(1, "model")
    if table is None:
        raise OrtModelError(
            "model", "nothing", "a Model", "Missing Model. Invalid ORT format model."
        )
    graph_table = table.table(7, "model.graph")
    if graph_table is None:
        message = "Graph is null. Invalid ORT format model."
        raise OrtModelError("model.graph", "nothing", "a Graph", message)
    opsets = _read_opsets(table)
    reader = OrtGraphReader()
    graph = reader.read(graph_table, table.text(8, "model.graph_doc_string"))
    number = table.long(5, "model.model_version")
    kernel_types = None
    if version >= FIRST_WITH_KERNEL_TYPES:
        kernel_types = read_kernel_types(
            root.table(3, "kernel_type_str_resolver"),
            reader.versions,
            has_defaults=MARK_OF_DEFAULTS in opsets,
        )
    model = Model(
        graph=graph,
        ir_version=table.long(0, "model.ir_version"),
        opset_imports=opsets,
        producer_name=table.text(2, "model.producer_name"),
        producer_version=table.text(3, "model.producer_version"),
        domain=table.text(4, "model.domain"),
        model_version=None if number == _NO_MODEL_VERSION else number,
        doc_string=table.text(6, "model.doc_string"),
        metadata_props=_read_metadata(table),
        kernel_types=kernel_types,
    )
    return OrtModel(version=version, model=model, has_optimizations=reader.has_optimizations)


def _read_version(root: Table) -> int:
    """The format's version; stricter than ONNX Runtime, which takes most texts for an old one."""
    if not root.has(0):
        message = "Serialized version info is null. Invalid ORT format model."
        raise OrtModelError("ort_version", "nothing", f"1 to {NEWEST_VERSION}", message)
    text = root.text(0, "ort_version")
    digits = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    if not digits or text.startswith("0"):
        raise FormatError("ort_version", repr(text[:80]), f"a number from 1 to {NEWEST_VERSION}")
    if int(text) > NEWEST_VERSION:
        message = f"The ORT format model version [{text}] is not supported in this build."
        raise OrtModelError("ort_version", text, f"1 to {NEWEST_VERSION}", message)
    return int(text)


def _read_opsets(table: Table) -> dict[str, int]:
    opsets: dict[str, int] = {}
    for entry in table.tables(1, "opset_import"):
        domain = entry.text(0, "opset_import.domain")
        opsets["" if domain == "ai.onnx" else domain] = entry.long(1, "opset_import.version")
    if not opsets:
        message = "Model must have opset imports. Invalid ORT format model."
        raise OrtModelError("opset_import", "none", "one or more", message)
    return opsets


def _read_metadata(table: Table) -> Mapping[str, str]:
    return {
        entry.text(0, "metadata_props.key"): entry.text(1, "metadata_props.value")
        for entry in table.tables(9, "metadata_props")
    }

"""ModelProto bytes to a Model: bounds-checked, without protobuf, without copying weights.

Read as protobuf reads, with one difference: a message that may be there once and is there
twice is refused, not merged. Of scalars and of entries with one name the last one counts, as
in ONNX Runtime. What Model has no room for (training information, quantization annotations,
denotations, device configurations) is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.decode_graph import GraphDecoder, plain_domain
from ctx_formats.decode_type import once
from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import FunctionDef, Model
from ctx_formats.wire import (
    NO_RUNS,
    as_int64,
    decode_entry,
    decode_text,
    delimited_tag,
    read_fields,
    varint_tag,
)

if TYPE_CHECKING:
    from ctx_formats.wire import Runs

_IR_VERSION, _MODEL_VERSION = varint_tag(1), varint_tag(5)
_NUMBERS = (_IR_VERSION, _MODEL_VERSION)
_GRAPH, _OPSET, _METADATA, _FUNCTION = (delimited_tag(n) for n in (7, 8, 14, 25))
_PRODUCER_NAME, _PRODUCER_VERSION, _DOMAIN, _DOC = (delimited_tag(n) for n in (2, 3, 4, 6))
_TEXTS = {
    _PRODUCER_NAME: "model.producer_name",
    _PRODUCER_VERSION: "model.producer_version",
    _DOMAIN: "model.domain",
    _DOC: "model.doc_string",
}
_OPSET_DOMAIN, _OPSET_VERSION = delimited_tag(1), varint_tag(2)
_FUNCTION_TEXTS = {
    delimited_tag(1): "name",
    delimited_tag(10): "domain",
    delimited_tag(13): "overload",
}


def read_model(data: memoryview, *, file: str = "", runs: Runs = NO_RUNS) -> Model:
    """Decode a ModelProto.

    Args:
        data: The whole file; tensors of the result are views of it.
        file: Named in errors.
        runs: Bytes of the file that are not in `data`, by where they begin.

    Raises:
        FormatError: The bytes are not a ModelProto, or (field "model.graph", found "no graph")
            one without a graph.
    """
    if data.format != "B" or data.ndim != 1:
        data = data.cast("B")
    try:
        return _read_model(data, runs)
    except FormatError as exc:
        raise exc.in_file(file) from exc
    except RecursionError as exc:  # depth is bounded; a caller may have used up the stack
        raise FormatError("graph", "nested too deep for this call stack", file=file) from exc


def _read_model(data: memoryview, runs: Runs) -> Model:
    graph: tuple[int, int] | None = None
    texts: dict[int, str] = {}
    numbers: dict[int, int] = {}
    opsets: dict[str, int] = {}
    metadata: dict[str, str] = {}
    functions: list[FunctionDef] = []
    for tag, a, b in read_fields(data, 0, len(data)):
        if tag == _GRAPH:
            graph = once("model", graph, a, b)
        elif tag == _OPSET:
            domain, version = _opset(data, a, b)
            opsets[domain] = version
        elif tag == _METADATA:
            key, value = decode_entry(data, a, b, "metadata_props")
            metadata[key] = value
        elif tag == _FUNCTION:
            functions.append(_function(data, a, b))
        elif tag in _TEXTS:
            texts[tag] = decode_text(data, a, b, _TEXTS[tag])
        elif tag in _NUMBERS:
            numbers[tag] = as_int64(a)
    if graph is None:
        raise FormatError("model.graph", "no graph", "a GraphProto")
    return Model(
        graph=GraphDecoder(data, runs).graph(*graph),
        ir_version=numbers.get(_IR_VERSION, 0),
        opset_imports=opsets,
        producer_name=texts.get(_PRODUCER_NAME, ""),
        producer_version=texts.get(_PRODUCER_VERSION, ""),
        domain=texts.get(_DOMAIN, ""),
        model_version=numbers.get(_MODEL_VERSION),
        doc_string=texts.get(_DOC, ""),
        metadata_props=metadata,
        functions=tuple(functions),
    )


def _opset(data: memoryview, start: int, end: int) -> tuple[str, int]:
    domain, version = "", 0
    for tag, a, b in read_fields(data, start, end):
        if tag == _OPSET_DOMAIN:
            domain = decode_text(data, a, b, "opset_import.domain")
        elif tag == _OPSET_VERSION:
            version = as_int64(a)
    return plain_domain(domain), version


def _function(data: memoryview, start: int, end: int) -> FunctionDef:
    texts = {"name": "", "domain": "", "overload": ""}
    for tag, a, b in read_fields(data, start, end):
        field = _FUNCTION_TEXTS.get(tag)
        if field is not None:
            texts[field] = decode_text(data, a, b, f"function.{field}")
    return FunctionDef(
        name=texts["name"],
        domain=plain_domain(texts["domain"]),
        overload=texts["overload"],
        encoded=data[start:end],
    )

"""A Model to a file in ONNX Runtime's ORT format, version 6: deterministic, weights not copied.

docs/formats/ort.md. Everything that the format cannot hold is refused before the first byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.flatbuffer_writer import FlatBufferWriter, Scalar, TableFields
from ctx_formats.ort_graph_writer import OrtGraphWriter
from ctx_formats.ort_model_reader import IDENTIFIER, MARK_OF_DEFAULTS, NEWEST_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.flatbuffer_writer import Field
    from ctx_formats.onnx_model import Model
    from ctx_formats.ort_operators import OrtOperator

_NO_MODEL_VERSION = (1 << 63) - 1


def encode_ort_model(
    model: Model, operators: Mapping[tuple[str, str], OrtOperator]
) -> Sequence[bytes | memoryview]:
    """The pieces of a file.

    Args:
        model: With a type for each value, nodes in topological order and all their attributes,
            data in memory, no functions.
        operators: By domain ("" for ai.onnx) and type, of every node, those in bodies included.

    Raises:
        FormatError: The format cannot hold something, or an operator or a type is not known.
    """
    if model.functions:
        raise FormatError("functions", f"{len(model.functions)}", "none: inline them")
    graph = OrtGraphWriter(operators)
    body = graph.table(model.graph)
    version = _NO_MODEL_VERSION if model.model_version is None else model.model_version
    opsets = {**model.opset_imports, MARK_OF_DEFAULTS: 1}
    fields: dict[int, Field] = {
        0: Scalar("q", model.ir_version),
        1: [
            TableFields({0: domain.encode(), 1: Scalar("q", number)})
            for domain, number in sorted(opsets.items())
        ],
        5: Scalar("q", version),
        7: body,
        9: [
            TableFields({0: key.encode(), 1: value.encode()})
            for key, value in model.metadata_props.items()
        ],
    }
    texts = {2: model.producer_name, 3: model.producer_version, 4: model.domain}
    texts |= {6: model.doc_string, 8: model.graph.doc_string}
    fields |= {index: text.encode() for index, text in texts.items() if text}
    root = TableFields(
        {
            0: str(NEWEST_VERSION).encode(),
            1: TableFields(fields),
            3: _resolver(operators, graph.used),
        }
    )
    return FlatBufferWriter(IDENTIFIER).finish(root)


def _resolver(
    operators: Mapping[tuple[str, str], OrtOperator], used: set[tuple[str, str]]
) -> TableFields:
    """KernelTypeStrResolver; entries sorted by their keys' bytes, which readers search."""
    entries = {
        f"{domain}:{op_type}:{operators[domain, op_type].since_version}".encode(): operators[
            domain, op_type
        ]
        for domain, op_type in used
    }
    return TableFields(
        {0: [TableFields({0: key, 1: _arguments(entries[key])}) for key in sorted(entries)]}
    )


def _arguments(operator: OrtOperator) -> list[TableFields]:
    names = sorted((name.encode(), places) for name, places in operator.places.items())
    return [
        TableFields({0: name, 1: [_place(*place) for place in places]}) for name, places in names
    ]


def _place(is_input: bool, index: int) -> TableFields:  # noqa: FBT001 - a pair of KernelTypes
    fields: dict[int, Field] = {} if is_input else {0: Scalar("B", 1)}
    if index:
        fields[1] = Scalar("I", index)
    return TableFields(fields)

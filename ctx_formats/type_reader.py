"""Types and denotations of the values in an encoded model, without decoding its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.decode_type import TypeCache, decode_value_info, once
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.wire import decode_text, delimited_tag, read_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.onnx_model import ValueInfo

_GRAPH = delimited_tag(7)
_ATTRIBUTE, _BODY, _BODIES = (delimited_tag(n) for n in (5, 6, 11))
_NODE, _INPUT, _OUTPUT, _INFO = (delimited_tag(n) for n in (1, 11, 12, 13))
_NAME, _TYPE = delimited_tag(1), delimited_tag(2)
_TENSOR, _SHAPE, _DIM, _DENOTATION = (delimited_tag(n) for n in (1, 2, 1, 3))


@dataclass(frozen=True, slots=True)
class GraphTypes:
    """The types that a graph declares for its values.

    Attributes:
        bodies: Those of the graphs in the attributes of the node of an index, in their order; read
            when they are asked for.
    """

    outputs: Sequence[ValueInfo]
    value_info: Mapping[str, ValueInfo]
    bodies: Callable[[int], Sequence[GraphTypes]]


def read_types(data: memoryview) -> GraphTypes:
    """Those of the graph in a ModelProto.

    Raises:
        FormatError: The bytes are not a ModelProto with a graph; `bodies`, that one is none.
    """
    graph: tuple[int, int] | None = None
    for tag, a, b in read_fields(data, 0, len(data)):
        if tag == _GRAPH:
            graph = once("model", graph, a, b)
    if graph is None:
        raise FormatError("model.graph", "no graph", "a GraphProto")
    return _read_graph(data, graph, {})


def _read_graph(data: memoryview, graph: tuple[int, int], types: TypeCache) -> GraphTypes:
    nodes: list[tuple[int, int]] = []
    infos: dict[int, list[ValueInfo]] = {_OUTPUT: [], _INFO: []}
    for tag, a, b in read_fields(data, *graph):
        if tag == _NODE:
            nodes.append((a, b))
        elif tag in infos:
            infos[tag].append(decode_value_info(data, a, b, types))
    return GraphTypes(
        outputs=infos[_OUTPUT],
        value_info={info.name: info for info in infos[_INFO]},
        bodies=lambda index: [
            _read_graph(data, body, types)
            for attribute in _messages(data, nodes[index], _ATTRIBUTE)
            for field in (_BODY, _BODIES)
            for body in _messages(data, attribute, field)
        ],
    )


def input_denotations(data: memoryview) -> dict[str, tuple[str, ...]]:
    """Denotations (onnx.proto's TensorShapeProto) of tensor inputs by name, "" for none.

    Args:
        data: A ModelProto that `read_model` has read.
    """
    denotations = {}
    for graph in _messages(data, (0, len(data)), _GRAPH):
        for value_info in _messages(data, graph, _INPUT):
            name = _text(data, value_info, _NAME)
            spans = [value_info]
            for tag in (_TYPE, _TENSOR, _SHAPE, _DIM):
                spans = [inner for span in spans for inner in _messages(data, span, tag)]
            denotations[name] = tuple(_text(data, dim, _DENOTATION) for dim in spans)
    return denotations


def _messages(data: memoryview, span: tuple[int, int], field: int) -> list[tuple[int, int]]:
    return [(a, b) for tag, a, b in read_fields(data, *span) if tag == field]


def _text(data: memoryview, span: tuple[int, int], field: int) -> str:
    spans = _messages(data, span, field)
    return decode_text(data, *spans[-1], "denotation") if spans else ""

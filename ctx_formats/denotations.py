"""What the dimensions of a model's inputs mean: `denotation` in onnx.proto's TensorShapeProto."""

from __future__ import annotations

from ctx_formats.decode_text import decode_text
from ctx_formats.wire import delimited_tag, read_fields

_GRAPH, _INPUT, _TYPE = delimited_tag(7), delimited_tag(11), delimited_tag(2)
_NAME = delimited_tag(1)
_TENSOR, _SHAPE, _DIM, _DENOTATION = (delimited_tag(n) for n in (1, 2, 1, 3))


def input_denotations(data: memoryview) -> dict[str, tuple[str, ...]]:
    """The denotation of each dimension of each tensor input, "" for none; inputs by name.

    Args:
        data: A ModelProto that `read_model` has read.
    """
    found = {}
    for graph in _messages(data, (0, len(data)), _GRAPH):
        for given in _messages(data, graph, _INPUT):
            name = _text(data, given, _NAME)
            spans = [given]
            for tag in (_TYPE, _TENSOR, _SHAPE, _DIM):
                spans = [inner for span in spans for inner in _messages(data, span, tag)]
            found[name] = tuple(_text(data, dim, _DENOTATION) for dim in spans)
    return found


def _messages(data: memoryview, span: tuple[int, int], wanted: int) -> list[tuple[int, int]]:
    return [(a, b) for tag, a, b in read_fields(data, *span) if tag == wanted]


def _text(data: memoryview, span: tuple[int, int], wanted: int) -> str:
    spans = _messages(data, span, wanted)
    return decode_text(data, *spans[-1], "denotation") if spans else ""

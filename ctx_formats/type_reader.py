"""Types of the values in an encoded model, without decoding its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.decode_graph import GraphDecoder
from ctx_formats.decode_type import TypeCache, decode_value_info, once
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.wire import delimited_tag, read_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.onnx_model import Node, ValueInfo

_GRAPH = delimited_tag(7)
_NODE, _OUTPUT, _INFO = (delimited_tag(n) for n in (1, 12, 13))


@dataclass(frozen=True, slots=True)
class GraphTypes:
    """What a graph says of its values.

    Attributes:
        node: The node of an index, decoded when it is asked for.
    """

    outputs: Sequence[ValueInfo]
    value_info: Mapping[str, ValueInfo]
    node: Callable[[int], Node]


def read_types(data: memoryview) -> GraphTypes:
    """Those of the graph in a ModelProto.

    Raises:
        FormatError: The bytes are no ModelProto with a graph; `node`, that the node is none.
    """
    graph: tuple[int, int] | None = None
    for tag, a, b in read_fields(data, 0, len(data)):
        if tag == _GRAPH:
            graph = once("model", graph, a, b)
    if graph is None:
        raise FormatError("model.graph", "no graph", "a GraphProto")
    types: TypeCache = {}
    nodes: list[tuple[int, int]] = []
    infos: dict[int, list[ValueInfo]] = {_OUTPUT: [], _INFO: []}
    for tag, a, b in read_fields(data, *graph):
        if tag == _NODE:
            nodes.append((a, b))
        elif tag in infos:
            infos[tag].append(decode_value_info(data, a, b, types))
    decoder = GraphDecoder(data)
    return GraphTypes(
        outputs=infos[_OUTPUT],
        value_info={info.name: info for info in infos[_INFO]},
        node=lambda index: decoder.node(*nodes[index]),
    )

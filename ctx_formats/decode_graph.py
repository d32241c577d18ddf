"""GraphProto and NodeProto to values."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ctx_formats.decode_attribute import decode_attribute, is_plain
from ctx_formats.decode_type import TypeCache, decode_value_info
from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import GraphDef, Node
from ctx_formats.wire import (
    NO_RUNS,
    decode_entry,
    decode_text,
    delimited_tag,
    not_text,
    read_fields,
)

if TYPE_CHECKING:
    from ctx_formats.onnx_model import Attribute, SparseTensor, Tensor, ValueInfo
    from ctx_formats.wire import Runs

MAX_DEPTH = 32
"""Subgraphs within subgraphs. protobuf reads messages to a depth of 100, a subgraph takes
three of them; models in the wild nest three or four deep."""

_SMALL_NODE = 1 << 11
"""Bytes of a node that are copied before they are read: Python slices bytes twice as fast."""
_SMALL_ATTRIBUTE = 128

_NODE, _NAME, _INITIALIZER = delimited_tag(1), delimited_tag(2), delimited_tag(5)
_DOC, _INPUT, _OUTPUT, _INFO = (delimited_tag(n) for n in (10, 11, 12, 13))
_SPARSE, _METADATA = delimited_tag(15), delimited_tag(16)

_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _OP_TYPE = (delimited_tag(n) for n in (1, 2, 3, 4))
_ATTRIBUTE, _NODE_DOC, _DOMAIN, _OVERLOAD = (delimited_tag(n) for n in (5, 6, 7, 8))
_NODE_METADATA = delimited_tag(9)
_NODE_TEXTS = {_NODE_NAME, _OP_TYPE, _NODE_DOC, _DOMAIN, _OVERLOAD}


class GraphDecoder:
    """Decodes the graphs of one file.

    It remembers the types and the attributes it has seen, because a model repeats the same
    few hundreds of times; values are frozen, so they can be shared.
    """

    def __init__(self, data: memoryview, runs: Runs = NO_RUNS) -> None:
        """`runs` are bytes of the file that are not in `data`, by where they begin."""
        self._data = data
        self._runs = runs
        self._types: TypeCache = {}
        self._attributes: dict[bytes, Attribute] = {}

    def graph(self, start: int, end: int, depth: int = 0) -> GraphDef:
        """The GraphProto in data[start:end].

        Raises:
            FormatError: It is none, or graphs nest deeper than MAX_DEPTH.
        """
        if depth > MAX_DEPTH:
            raise FormatError("graph", f"subgraphs nested over {MAX_DEPTH} deep")
        data = self._data
        nodes: list[Node] = []
        infos: dict[int, list[ValueInfo]] = {_INPUT: [], _OUTPUT: [], _INFO: []}
        initializers: dict[str, Tensor] = {}
        sparse: dict[str, SparseTensor] = {}
        texts: dict[int, str] = {}
        metadata: dict[str, str] = {}
        for tag, a, b in read_fields(data, start, end):
            if tag == _NODE:
                nodes.append(self.node(a, b, depth))
            elif tag == _INITIALIZER:
                from ctx_formats.decode_tensor import decode_tensor  # noqa: PLC0415 - lazy: reload

                tensor = decode_tensor(data, a, b, self._runs)
                initializers[tensor.name] = tensor
            elif tag in infos:
                infos[tag].append(decode_value_info(data, a, b, self._types))
            elif tag == _SPARSE:
                from ctx_formats.decode_tensor import decode_sparse_tensor  # noqa: PLC0415 - lazy: reload

                sparse_tensor = decode_sparse_tensor(data, a, b, self._runs)
                sparse[sparse_tensor.values.name] = sparse_tensor
            elif tag == _METADATA:
                key, value = decode_entry(data, a, b, "graph.metadata_props")
                metadata[key] = value
            elif tag in (_NAME, _DOC):
                texts[tag] = decode_text(data, a, b, "graph")
        return GraphDef(
            name=texts.get(_NAME, ""),
            nodes=tuple(nodes),
            inputs=tuple(infos[_INPUT]),
            outputs=tuple(infos[_OUTPUT]),
            initializers=initializers,
            sparse_initializers=sparse,
            value_info={info.name: info for info in infos[_INFO]},
            doc_string=texts.get(_DOC, ""),
            metadata_props=metadata,
        )

    def node(self, start: int, end: int, depth: int = 0) -> Node:
        """The NodeProto in data[start:end], of a graph at `depth`.

        Raises:
            FormatError: It is none.
        """
        inputs: list[str] = []
        outputs: list[str] = []
        attributes: dict[str, Attribute] = {}
        texts: dict[int, str] = {}
        metadata: dict[str, str] = {}
        node = self._data[start:end]
        # A payload inside the node stays where it is.
        view: bytes | memoryview = bytes(node) if end - start <= _SMALL_NODE else node
        try:
            for tag, a, b in read_fields(view, 0, end - start):
                if tag == _NODE_INPUT:
                    inputs.append(str(view[a:b], "utf-8"))
                elif tag == _NODE_OUTPUT:
                    outputs.append(str(view[a:b], "utf-8"))
                elif tag == _ATTRIBUTE:
                    attribute = self._attribute(start + a, start + b, depth)
                    if attribute.name in attributes:
                        raise FormatError(f"attribute '{attribute.name}'", "twice", "once")
                    attributes[attribute.name] = attribute
                elif tag in _NODE_TEXTS:
                    texts[tag] = str(view[a:b], "utf-8")
                elif tag == _NODE_METADATA:
                    key, value = decode_entry(view, a, b, "node.metadata_props")
                    metadata[key] = value
        except UnicodeDecodeError as exc:
            raise not_text(exc, "node") from exc
        return Node(
            texts.get(_OP_TYPE, ""),
            tuple(inputs),
            tuple(outputs),
            texts.get(_NODE_NAME, ""),
            plain_domain(texts.get(_DOMAIN, "")),
            attributes,
            texts.get(_NODE_DOC, ""),
            texts.get(_OVERLOAD, ""),
            metadata,
        )

    def _attribute(self, start: int, end: int, depth: int) -> Attribute:
        data = self._data
        key = bytes(data[start:end]) if end - start <= _SMALL_ATTRIBUTE else b""
        attribute = self._attributes.get(key)
        if attribute is None:
            subgraph = partial(self.graph, depth=depth + 1)
            attribute = decode_attribute(data, start, end, subgraph, self._runs)
            # Of a graph the depth counts; of a tensor the place of its bytes.
            if key and is_plain(attribute):
                self._attributes[key] = attribute
        return attribute


def plain_domain(domain: str) -> str:
    """A domain as Model spells it: ONNX's own is ""."""
    return "" if domain == "ai.onnx" else domain

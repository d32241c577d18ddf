"""ModelProto bytes to a Model: bounds-checked, without protobuf, without copying weights."""

from __future__ import annotations

from ctx_formats.decode_tensor import (
    decode_entry,
    decode_sparse_tensor,
    decode_tensor,
    decode_text,
)
from ctx_formats.decode_type import decode_type, decode_value_info
from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import (
    Attribute,
    AttributeType,
    FunctionDef,
    GraphDef,
    Model,
    Node,
    SparseTensor,
    Tensor,
    ValueInfo,
)
from ctx_formats.wire import (
    FIXED32,
    LENGTH_DELIMITED,
    VARINT,
    read_fields,
    read_float,
    read_packed_varints,
    signed,
)

MAX_DEPTH = 64
"""Subgraphs within subgraphs; ONNX models in the wild nest three or four deep."""

_SINGLE = {2: AttributeType.FLOAT, 3: AttributeType.INT, 4: AttributeType.STRING}
_MANY = {
    AttributeType.FLOATS,
    AttributeType.INTS,
    AttributeType.STRINGS,
    AttributeType.TENSORS,
    AttributeType.GRAPHS,
    AttributeType.SPARSE_TENSORS,
    AttributeType.TYPE_PROTOS,
}
_FIELD_TYPES = {
    2: AttributeType.FLOAT,
    3: AttributeType.INT,
    4: AttributeType.STRING,
    5: AttributeType.TENSOR,
    6: AttributeType.GRAPH,
    7: AttributeType.FLOATS,
    8: AttributeType.INTS,
    9: AttributeType.STRINGS,
    10: AttributeType.TENSORS,
    11: AttributeType.GRAPHS,
    14: AttributeType.TYPE_PROTO,
    15: AttributeType.TYPE_PROTOS,
    22: AttributeType.SPARSE_TENSOR,
    23: AttributeType.SPARSE_TENSORS,
}
_DEFAULTS: dict[AttributeType, object] = {
    AttributeType.FLOAT: 0.0,
    AttributeType.INT: 0,
    AttributeType.STRING: b"",
}


def read_model(data: memoryview, *, file: str = "") -> Model:
    """Decode a ModelProto.

    Args:
        data: The whole file; tensors of the result are views of it.
        file: Named in errors.

    Raises:
        FormatError: The bytes are no ModelProto, or (field "model.graph") one without a graph.
    """
    try:
        return _read_model(data)
    except FormatError as exc:
        raise exc.in_file(file) from exc


def _read_model(data: memoryview) -> Model:
    graph: tuple[int, int] | None = None
    texts: dict[int, str] = {}
    numbers: dict[int, int] = {}
    opsets: dict[str, int] = {}
    metadata: dict[str, str] = {}
    functions: list[FunctionDef] = []
    for number, wire, a, b in read_fields(data, 0, len(data)):
        if wire == VARINT:
            numbers[number] = signed(a)
        elif wire != LENGTH_DELIMITED:
            continue
        elif number == 7:
            graph = (a, b)
        elif number == 8:
            domain, version = _opset(data, a, b)
            opsets[domain] = version
        elif number == 14:
            key, value = decode_entry(data, a, b, "metadata_props")
            metadata[key] = value
        elif number == 25:
            functions.append(_function(data, a, b))
        elif number in (2, 3, 4, 6):
            texts[number] = decode_text(data, a, b, f"model.{number}")
    if graph is None:
        raise FormatError("model.graph", "no graph", "a GraphProto")
    return Model(
        graph=_graph(data, *graph, depth=0),
        ir_version=numbers.get(1, 0),
        opset_imports=opsets,
        producer_name=texts.get(2, ""),
        producer_version=texts.get(3, ""),
        domain=texts.get(4, ""),
        model_version=numbers.get(5),
        doc_string=texts.get(6, ""),
        metadata_props=metadata,
        functions=tuple(functions),
    )


def _opset(data: memoryview, start: int, end: int) -> tuple[str, int]:
    domain, version = "", 0
    for number, wire, a, b in read_fields(data, start, end):
        if number == 1 and wire == LENGTH_DELIMITED:
            domain = decode_text(data, a, b, "opset_import.domain")
        elif number == 2 and wire == VARINT:
            version = signed(a)
    return ("" if domain == "ai.onnx" else domain), version


def _function(data: memoryview, start: int, end: int) -> FunctionDef:
    texts = {
        number: decode_text(data, a, b, "function")
        for number, wire, a, b in read_fields(data, start, end)
        if wire == LENGTH_DELIMITED and number in (1, 10, 13)
    }
    return FunctionDef(
        name=texts.get(1, ""),
        domain=texts.get(10, ""),
        overload=texts.get(13, ""),
        encoded=data[start:end],
    )


def _graph(data: memoryview, start: int, end: int, depth: int) -> GraphDef:
    if depth > MAX_DEPTH:
        raise FormatError("graph", f"subgraphs nested over {MAX_DEPTH} deep")
    nodes: list[Node] = []
    infos: dict[int, list[ValueInfo]] = {11: [], 12: [], 13: []}
    initializers: dict[str, Tensor] = {}
    sparse: dict[str, SparseTensor] = {}
    texts: dict[int, str] = {}
    metadata: dict[str, str] = {}
    for number, wire, a, b in read_fields(data, start, end):
        if wire != LENGTH_DELIMITED:
            continue
        if number == 1:
            nodes.append(_node(data, a, b, depth))
        elif number == 5:
            tensor = decode_tensor(data, a, b)
            initializers[tensor.name] = tensor
        elif number in infos:
            infos[number].append(decode_value_info(data, a, b))
        elif number == 15:
            found = decode_sparse_tensor(data, a, b)
            sparse[found.values.name] = found
        elif number == 16:
            key, value = decode_entry(data, a, b, "graph.metadata_props")
            metadata[key] = value
        elif number in (2, 10):
            texts[number] = decode_text(data, a, b, "graph")
    return GraphDef(
        name=texts.get(2, ""),
        nodes=tuple(nodes),
        inputs=tuple(infos[11]),
        outputs=tuple(infos[12]),
        initializers=initializers,
        sparse_initializers=sparse,
        value_info={info.name: info for info in infos[13]},
        doc_string=texts.get(10, ""),
        metadata_props=metadata,
    )


def _node(data: memoryview, start: int, end: int, depth: int) -> Node:
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: dict[str, Attribute] = {}
    texts: dict[int, str] = {}
    metadata: dict[str, str] = {}
    for number, wire, a, b in read_fields(data, start, end):
        if wire != LENGTH_DELIMITED:
            continue
        if number == 1:
            inputs.append(decode_text(data, a, b, "node.input"))
        elif number == 2:
            outputs.append(decode_text(data, a, b, "node.output"))
        elif number == 5:
            attribute = _attribute(data, a, b, depth)
            attributes[attribute.name] = attribute
        elif number == 9:
            key, value = decode_entry(data, a, b, "node.metadata_props")
            metadata[key] = value
        elif number in (3, 4, 6, 7, 8):
            texts[number] = decode_text(data, a, b, "node")
    domain = texts.get(7, "")
    return Node(
        op_type=texts.get(4, ""),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        name=texts.get(3, ""),
        domain="" if domain == "ai.onnx" else domain,
        attributes=attributes,
        doc_string=texts.get(6, ""),
        overload=texts.get(8, ""),
        metadata_props=metadata,
    )


def _attribute(data: memoryview, start: int, end: int, depth: int) -> Attribute:
    texts: dict[int, str] = {}
    declared = 0
    values: dict[AttributeType, list[object]] = {}
    for number, wire, a, b in read_fields(data, start, end):
        if number == 20 and wire == VARINT:
            declared = a
        elif number in _FIELD_TYPES:
            kind = _FIELD_TYPES[number]
            values.setdefault(kind, []).extend(_values(data, kind, wire, (a, b), depth))
        elif number in (1, 13, 21) and wire == LENGTH_DELIMITED:
            texts[number] = decode_text(data, a, b, "attribute")
    name = texts.get(1, "")
    kind = _kind(name, declared, values)
    found = values.get(kind, [])
    value: object = None
    if not texts.get(21):
        value = tuple(found) if kind in _MANY else found[-1] if found else _DEFAULTS.get(kind)
    return Attribute(name, kind, value, texts.get(21, ""), texts.get(13, ""))


def _kind(name: str, declared: int, values: dict[AttributeType, list[object]]) -> AttributeType:
    """The attribute's type; files older than IR version 2 leave it to the field in use."""
    try:
        kind = AttributeType(declared)
    except ValueError as exc:
        raise FormatError(f"attribute '{name}'.type", str(declared), "0 to 14") from exc
    if kind is AttributeType.UNDEFINED and len(values) == 1:
        kind = next(iter(values))
    return kind


def _values(  # noqa: C901, PLR0912 - one case a field of AttributeProto
    data: memoryview, kind: AttributeType, wire: int, span: tuple[int, int], depth: int
) -> list[object]:
    a, b = span
    if kind is AttributeType.INT and wire == VARINT:
        return [signed(a)]
    if kind is AttributeType.FLOAT and wire == FIXED32:
        return [read_float(data, a)]
    if kind is AttributeType.INTS and wire == VARINT:
        return [signed(a)]
    if kind is AttributeType.FLOATS and wire == FIXED32:
        return [read_float(data, a)]
    if wire != LENGTH_DELIMITED:
        raise FormatError("attribute", f"{kind.name} with wire type {wire}")
    match kind:
        case AttributeType.INTS:
            return [signed(v) for v in read_packed_varints(data, a, b)]
        case AttributeType.FLOATS:
            if (b - a) % 4:
                raise FormatError("attribute.floats", f"{b - a} bytes", "a multiple of 4")
            return [read_float(data, at) for at in range(a, b, 4)]
        case AttributeType.STRING if b - a > LARGE_STRING:
            return [data[a:b]]
        case AttributeType.STRING | AttributeType.STRINGS:
            return [bytes(data[a:b])]
        case AttributeType.TENSOR | AttributeType.TENSORS:
            return [decode_tensor(data, a, b)]
        case AttributeType.GRAPH | AttributeType.GRAPHS:
            return [_graph(data, a, b, depth + 1)]
        case AttributeType.SPARSE_TENSOR | AttributeType.SPARSE_TENSORS:
            return [decode_sparse_tensor(data, a, b)]
        case AttributeType.TYPE_PROTO | AttributeType.TYPE_PROTOS:
            return [decode_type(data, a, b)]
        case _:
            raise FormatError("attribute", f"{kind.name} with wire type {wire}")


LARGE_STRING = 1 << 16
"""A STRING attribute over this many bytes (an embedded payload) stays a view of the file."""

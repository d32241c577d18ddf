"""Graphs and nodes of an ORT format file as values: tables Graph, Node, NodeEdge and ValueInfo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import (
    Attribute,
    AttributeType,
    DataType,
    GraphDef,
    MapType,
    Node,
    SequenceType,
    TensorType,
    ValueInfo,
)
from ctx_formats.ort_model_error import OrtModelError
from ctx_formats.ort_tensor_reader import read_sparse_tensor, read_tensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.flatbuffer import Table
    from ctx_formats.onnx_model import Dim, SparseTensor, Tensor, ValueType

_SUFFIX = "Invalid ORT format model."
_TENSOR, _SEQUENCE, _MAP = 1, 2, 3
_VALUE, _PARAM = 1, 2
_READ = frozenset(range(AttributeType.FLOAT, AttributeType.GRAPHS))
_NODE_CAP = 1_000_000
_BODY = "body"


class OrtGraphReader:
    """Reads the graphs of one file.

    Attributes:
        versions: Schema version of each operator by domain and type; None where nodes differ.
        has_optimizations: Whether a graph has saved runtime optimizations.
    """

    def __init__(self) -> None:
        self.versions: dict[tuple[str, str], int | None] = {}
        self.has_optimizations = False
        self._around: list[frozenset[str]] = []
        self._types: dict[tuple[int, tuple[Dim, ...] | None], TensorType] = {}

    def read(self, table: Table, doc_string: str = "", name: str = "") -> GraphDef:
        """A graph and the bodies in it; nodes in the order of their indices, behind what they need.

        Raises:
            OrtModelError: Names or indices contradict each other.
            FormatError: A part lies outside the file.
        """
        values = self._read_values(table)
        initializers = self._read_initializers(table)
        sparse = self._read_sparse(table)
        optimizations = table.table(8, "graph.runtime_optimizations")
        if optimizations is not None and any(optimizations.tables(0, "records")):
            self.has_optimizations = True
        self._around.append(frozenset(values.keys() | initializers.keys() | sparse.keys()))
        nodes = self._read_nodes(table)
        self._around.pop()
        made = {output for node in nodes for output in node.outputs}
        inputs, outputs = (self._infos(table, at, values) for at in (5, 6))
        shown = {info.name for info in (*inputs, *outputs)}
        inner = made - shown
        return GraphDef(
            name=name,
            nodes=nodes,
            inputs=inputs,
            outputs=outputs,
            initializers=initializers,
            sparse_initializers=sparse,
            value_info={n: info for n, info in values.items() if n in inner and n},
            doc_string=doc_string,
        )

    def _read_values(self, table: Table) -> dict[str, ValueInfo]:
        values: dict[str, ValueInfo] = {}
        for entry in table.tables(1, "node_args"):
            if not entry.has(0):
                raise OrtModelError(
                    "node_args.name", "nothing", "a name", f"NodeArg name is missing. {_SUFFIX}"
                )
            name = entry.text(0, "node_args.name")
            if name in values:
                message = f"Duplicate NodeArg name '{name}'. {_SUFFIX}"
                raise OrtModelError("node_args.name", repr(name), "a new name", message)
            typed = entry.table(2, f"type of '{name}'")
            if typed is None and name:
                message = f"Null type info for {name}. {_SUFFIX}"
                raise OrtModelError(f"type of '{name}'", "nothing", "a type", message)
            value_type = self._read_type(typed) if typed is not None else None
            values[name] = ValueInfo(name, value_type, entry.text(1, "node_args.doc_string"))
        return values

    def _read_type(self, table: Table) -> ValueType:
        """TypeInfo.

        Raises:
            OrtModelError: A kind or an element type that the format does not have.
        """
        kind, value = table.octet(1, "type.value_type"), table.table(2, "type.value")
        if value is None or kind not in (_TENSOR, _SEQUENCE, _MAP):
            message = f"Type:{kind} is not supported currently. {_SUFFIX}"
            raise OrtModelError("type.value_type", str(kind), "1, 2 or 3", message)
        if kind == _TENSOR:
            element = _element_type(value.integer(0, "tensor.elem_type"), "tensor.elem_type")
            shape = value.table(1, "tensor.shape")
            dims = None if shape is None else _read_shape(shape)
            known = self._types.get((element, dims))
            if known is None:
                known = self._types[element, dims] = TensorType(element, dims)
            return known
        if kind == _SEQUENCE:
            inner = value.table(0, "sequence.elem_type")
            return SequenceType(None if inner is None else self._read_type(inner))
        key = _element_type(value.integer(0, "map.key_type"), "map.key_type")
        inner = value.table(1, "map.value_type")
        return MapType(key, None if inner is None else self._read_type(inner))

    def _read_initializers(self, table: Table) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for entry in table.tables(0, "initializers"):
            tensor = read_tensor(entry, "initializer")
            tensors[tensor.name] = tensor  # the last of one name counts, as in ONNX Runtime
        return tensors

    def _read_sparse(self, table: Table) -> dict[str, SparseTensor]:
        tensors = (
            read_sparse_tensor(entry, "sparse_initializer")
            for entry in table.tables(7, "sparse_initializers")
        )
        return {tensor.values.name: tensor for tensor in tensors}

    def _read_nodes(self, table: Table) -> tuple[Node, ...]:
        nodes: dict[int, Node] = {}
        needs: dict[int, tuple[str, ...]] = {}
        tables = list(table.tables(2, "nodes"))
        edges = list(table.tables(4, "node_edges"))
        entries = len(tables) + len(edges)
        most = min(_NODE_CAP, max(1024, 64 * entries))
        for entry in tables:
            index = entry.word(4, "node.index")
            if index >= most:
                message = (
                    f"Node index {index} is unreasonably large relative to the number of entries "
                    f"({entries}). {_SUFFIX}"
                )
                raise OrtModelError("node.index", str(index), f"less than {most}", message)
            if index in nodes:
                message = f"Duplicate node index {index}. {_SUFFIX}"
                raise OrtModelError("node.index", str(index), "a new index", message)
            nodes[index], needs[index] = self._read_node(entry)
        if nodes and max(nodes) >= table.word(3, "max_node_index"):
            message = (
                f"Serialized max node index is smaller than the required node slot count. {_SUFFIX}"
            )
            slots = str(table.word(3, "max_node_index"))
            raise OrtModelError("max_node_index", slots, f"{max(nodes) + 1} or more", message)
        for edge in edges:
            _check_edge(edge, nodes)
        return tuple(nodes[index] for index in _sort_indices(nodes, needs))

    def _read_node(self, table: Table) -> tuple[Node, tuple[str, ...]]:
        """A node, and the values that it or a body of it needs."""
        name, op_type = table.text(0, "node.name"), table.text(5, "node.op_type")
        domain = table.text(2, "node.domain")
        domain = "" if domain == "ai.onnx" else domain
        inputs, outputs, implicit = (
            _names(table.texts(at, field), field)
            for at, field in ((8, "node.inputs"), (9, "node.outputs"), (12, "implicit_inputs"))
        )
        for argument in (*inputs, *outputs, *implicit):
            if argument and not any(argument in names for names in self._around):
                message = (
                    f"LoadNodeArgsFromOrtFormat: Node [{name}] op_type [{op_type}], could not "
                    f"find NodeArg {argument}"
                )
                raise OrtModelError("node", repr(argument), "the name of a NodeArg", message)
        _check_counts(table, name, len(inputs))
        version = table.integer(3, "node.since_version")
        known = self.versions.setdefault((domain, op_type), version)
        if known != version:
            self.versions[domain, op_type] = None
        attributes: dict[str, Attribute] = {}
        for entry in table.tables(10, "node.attributes"):
            attribute = self._read_attribute(entry)
            attributes[attribute.name] = attribute
        node = Node(
            op_type=op_type,
            inputs=inputs,
            outputs=outputs,
            name=name,
            domain=domain,
            attributes=attributes,
            doc_string=table.text(1, "node.doc_string"),
        )
        return node, inputs + implicit

    def _read_attribute(self, table: Table) -> Attribute:
        name = table.text(0, "attribute.name")
        number = table.integer(2, "attribute.type")
        kind = AttributeType(number) if number in _READ else AttributeType.UNDEFINED
        value = self._read_attribute_value(table, kind, name)
        if value is None:
            message = f"Attribute {name}: unsupported attribute type: {number}. {_SUFFIX}"
            raise OrtModelError(f"attribute '{name}'", f"type {number}", "1 to 9", message)
        return Attribute(name, kind, value, doc_string=table.text(1, "attribute.doc_string"))

    def _read_attribute_value(self, table: Table, kind: AttributeType, name: str) -> object:
        """The value in the field of `kind`; None if the format has no such field."""
        field = f"attribute '{name}'"
        match kind:
            case AttributeType.FLOAT:
                return table.single(3)
            case AttributeType.INT:
                return table.long(4, field)
            case AttributeType.STRING:
                return table.run(5, field)
            case AttributeType.TENSOR | AttributeType.GRAPH:
                at = 6 if kind is AttributeType.TENSOR else 7
                inner = table.table(at, field)
                if inner is None:
                    message = f"{field}: its value is missing. {_SUFFIX}"
                    raise OrtModelError(field, "nothing", kind.name, message)
                return (
                    read_tensor(inner, field, named=False)
                    if kind is AttributeType.TENSOR
                    else self.read(inner, name=_BODY)
                )
            case AttributeType.FLOATS:
                return table.singles(8, field)
            case AttributeType.INTS:
                return table.longs(9, field)
            case AttributeType.STRINGS:
                return table.runs(10, field)
            case AttributeType.TENSORS:
                return tuple(
                    read_tensor(inner, field, named=False) for inner in table.tables(11, field)
                )
            case _:
                return None

    def _infos(
        self, table: Table, at: int, values: Mapping[str, ValueInfo]
    ) -> tuple[ValueInfo, ...]:
        """The graph's inputs or outputs."""
        field = "graph.inputs" if at == 5 else "graph.outputs"
        names = _names(table.texts(at, field), field)
        for name in names:
            if name not in values:
                message = f"Graph references unknown NodeArg '{name}'. {_SUFFIX}"
                raise OrtModelError(field, repr(name), "the name of a NodeArg", message)
        return tuple(values[name] for name in names)


def _sort_indices(nodes: Mapping[int, Node], needs: Mapping[int, tuple[str, ...]]) -> list[int]:
    """Indices of nodes, each behind the nodes that it needs; a cycle is left to who runs the graph.

    ONNX Runtime gives the casts that it inserts the highest indices.
    """
    ordered = sorted(nodes)
    position = {index: at for at, index in enumerate(ordered)}
    makers = {name: index for index in ordered for name in nodes[index].outputs if name}
    before = {index: [makers[name] for name in needs[index] if name in makers] for index in ordered}
    if all(position[one] < position[index] for index in ordered for one in before[index]):
        return ordered
    order: dict[int, None] = {}
    entered: set[int] = set()
    stack = ordered[::-1]
    while stack:
        index = stack[-1]
        if index in entered:  # what it needs lay above it on the stack
            order[stack.pop()] = None
        else:
            entered.add(index)
            stack += [one for one in reversed(before[index]) if one not in entered]
    return list(order)


def _names(names: tuple[str, ...] | None, field: str) -> tuple[str, ...]:
    if names is None:
        message = "fbs_node_arg_names cannot be null"
        raise OrtModelError(field, "nothing", "names", message)
    return names


def _check_counts(table: Table, name: str, inputs: int) -> None:
    counts = table.integers(11, "node.input_arg_counts")
    if not table.has(11):
        message = "Node::LoadFromOrtFormat, input_arg_counts is missing"
        raise OrtModelError("node.input_arg_counts", "nothing", "counts", message)
    if any(count < 0 for count in counts) or sum(counts) != inputs:
        message = (
            f"Node::LoadFromOrtFormat, input_arg_counts total ({sum(counts)}) does not match "
            f"number of explicit inputs ({inputs}) for node {name}. {_SUFFIX}"
        )
        listed = str(list(counts[:16]))
        raise OrtModelError("node.input_arg_counts", listed, f"a sum of {inputs}", message)


def _check_edge(table: Table, nodes: Mapping[int, Node]) -> None:
    """Compare indices; which value an edge carries follows from the names."""
    index = table.word(0, "edge.node_index")
    if index not in nodes:
        message = f"NodeEdge references missing node {index}. {_SUFFIX}"
        raise OrtModelError("edge.node_index", str(index), "the index of a node", message)
    for at, field in ((1, "input edges"), (2, "output edges")):
        for other, _, _ in table.structs(at, "Iii", field):
            if other not in nodes:
                message = (
                    f"Node::LoadEdgesFromOrtFormat, {field} has out-of-range node index {other}. "
                    f"{_SUFFIX}"
                )
                raise OrtModelError(field, str(other), "the index of a node", message)


def _read_shape(table: Table) -> tuple[Dim, ...]:
    dims = table.tables(0, "shape.dim")
    return tuple([_read_dim(dim.table(0, "shape.dim.value")) for dim in dims])


def _read_dim(table: Table | None) -> Dim:
    if table is None:
        return None
    kind = table.octet(0, "dim_type")
    if kind == _VALUE:
        return table.long(1, "dim_value")
    return (table.text(2, "dim_param") or None) if kind == _PARAM else None


def _element_type(number: int, field: str) -> int:
    if not 0 <= number <= DataType.FLOAT8E5M2FNUZ:
        message = f"Unsupported tensor data type '<unknown>'. {_SUFFIX}"
        raise OrtModelError(field, str(number), "0 to 20", message, is_argument=True)
    return number

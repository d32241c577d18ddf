"""Graphs and nodes as tables of the ORT format: Graph, Node, NodeEdge and ValueInfo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.flatbuffer_writer import Numbers, Scalar, TableFields
from ctx_formats.onnx_model import Attribute, AttributeType, GraphDef, Tensor, TensorType
from ctx_formats.ort_value_writer import sparse_table, tensor_table, type_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.flatbuffer_writer import Field
    from ctx_formats.onnx_model import Node, ValueType
    from ctx_formats.ort_operators import OrtOperator

_EDGE = "Iii"


class OrtGraphWriter:
    """Makes the tables of one model's graphs.

    Attributes:
        used: Domain and type of the operators of all nodes so far.
    """

    def __init__(self, operators: Mapping[tuple[str, str], OrtOperator]) -> None:
        self._operators = operators
        self.used: set[tuple[str, str]] = set()

    def table(self, graph: GraphDef, around: Mapping[str, ValueType] | None = None) -> TableFields:
        """A Graph.

        Args:
            graph: With a type for each value.
            around: Types of the values of the graphs around it.

        Raises:
            FormatError: The format cannot hold something.
        """
        types = {**(around or {}), **_own_types(graph)}
        implicit = [implicit_inputs(node) for node in graph.nodes]
        names: dict[str, None] = {}
        for info in (*graph.inputs, *graph.outputs):
            names[info.name] = None
        for node, captured in zip(graph.nodes, implicit, strict=True):
            names.update(dict.fromkeys((*node.inputs, *node.outputs, *captured)))
        names.update(dict.fromkeys(graph.initializers))
        names.update(dict.fromkeys(graph.sparse_initializers))
        return TableFields(
            {
                0: [tensor_table(t, f"initializer '{n}'") for n, t in graph.initializers.items()],
                1: [_value_table(name, types) for name in names],
                2: [
                    self._node(index, node, captured, types)
                    for index, (node, captured) in enumerate(
                        zip(graph.nodes, implicit, strict=True)
                    )
                ],
                3: Scalar("I", len(graph.nodes)),
                4: _edge_tables(graph.nodes, implicit),
                5: [info.name.encode() for info in graph.inputs],
                6: [info.name.encode() for info in graph.outputs],
                7: [sparse_table(s, f"'{n}'") for n, s in graph.sparse_initializers.items()],
            }
        )

    def _node(
        self, index: int, node: Node, implicit: Sequence[str], types: Mapping[str, ValueType]
    ) -> TableFields:
        key = (node.domain, node.op_type)
        operator = self._operators.get(key)
        if operator is None:
            raise FormatError(
                f"node '{node.name}'",
                f"operator {node.op_type} of domain {node.domain or 'ai.onnx'}",
                "an operator with a schema",
            )
        self.used.add(key)
        return TableFields(
            {
                0: node.name.encode(),
                1: node.doc_string.encode(),
                2: node.domain.encode(),
                3: Scalar("i", operator.since_version),
                4: Scalar("I", index),
                5: node.op_type.encode(),
                8: [name.encode() for name in node.inputs],
                9: [name.encode() for name in node.outputs],
                10: [
                    self._attribute(attribute, f"node '{node.name}' attribute '{name}'", types)
                    for name, attribute in node.attributes.items()
                ],
                11: Numbers("i", operator.count_inputs(len(node.inputs))),
                12: [name.encode() for name in implicit],
            }
        )

    def _attribute(
        self, attribute: Attribute, field: str, types: Mapping[str, ValueType]
    ) -> TableFields:
        index, value = self._attribute_value(attribute, field, types)
        fields: dict[int, Field] = {
            0: attribute.name.encode(),
            2: Scalar("i", attribute.type),
            index: value,
        }
        if attribute.doc_string:
            fields[1] = attribute.doc_string.encode()
        return TableFields(fields)

    def _attribute_value(
        self, attribute: Attribute, field: str, types: Mapping[str, ValueType]
    ) -> tuple[int, Field]:
        """Index and value of the field for the attribute's type.

        Raises:
            FormatError: The format has none.
        """
        value = attribute.value
        items = value if isinstance(value, tuple) else ()
        match attribute.type, value:
            case AttributeType.FLOAT, float() | int():
                return 3, Scalar("f", value)
            case AttributeType.INT, int():
                return 4, Scalar("q", value)
            case AttributeType.STRING, bytes() | memoryview():
                return 5, bytes(value)
            case AttributeType.TENSOR, Tensor():
                return 6, tensor_table(value, field)
            case AttributeType.GRAPH, GraphDef():
                return 7, self.table(value, types)
            case AttributeType.FLOATS, _:
                return 8, Numbers("f", items)
            case AttributeType.INTS, _:
                return 9, Numbers("q", items)
            case AttributeType.STRINGS, _:
                return 10, [bytes(item) for item in items]
            case AttributeType.TENSORS, _:
                return 11, [tensor_table(item, field) for item in items]
            case _:
                raise FormatError(
                    field, attribute.type.name, "a number, a string, a tensor or a graph"
                )


def implicit_inputs(node: Node) -> tuple[str, ...]:
    """Names that the bodies of a node take from outside, in order of first use."""
    names: dict[str, None] = {}
    for attribute in node.attributes.values():
        if isinstance(attribute.value, GraphDef):
            names.update(dict.fromkeys(_free_names(attribute.value)))
    return tuple(names)


def _free_names(graph: GraphDef) -> list[str]:
    own = {info.name for info in graph.inputs} | graph.initializers.keys()
    own |= graph.sparse_initializers.keys()
    own |= {name for node in graph.nodes for name in node.outputs}
    used = [name for node in graph.nodes for name in (*node.inputs, *implicit_inputs(node))]
    used += [info.name for info in graph.outputs]
    return [name for name in used if name and name not in own]


def _own_types(graph: GraphDef) -> dict[str, ValueType]:
    types: dict[str, ValueType] = {
        name: TensorType(tensor.data_type, tensor.dims)
        for name, tensor in graph.initializers.items()
    }
    for name, sparse in graph.sparse_initializers.items():
        types[name] = TensorType(sparse.values.data_type, sparse.dims)
    for infos in (graph.outputs, graph.value_info.values(), graph.inputs):
        types.update({info.name: info.type for info in infos if info.type is not None})
    return types


def _value_table(name: str, types: Mapping[str, ValueType]) -> TableFields:
    """A ValueInfo; that of an omitted input has no type."""
    if not name:
        return TableFields({0: b""})
    value_type = types.get(name)
    if value_type is None:
        raise FormatError(f"value '{name}'", "no type", "a value whose type is known")
    return TableFields({0: name.encode(), 2: type_table(value_type, f"value '{name}'")})


def _edge_tables(nodes: Sequence[Node], implicit: Sequence[Sequence[str]]) -> list[TableFields]:
    """A NodeEdge for each node: from each output to every input that it feeds, both ways."""
    makers = {
        name: (index, place)
        for index, node in enumerate(nodes)
        for place, name in enumerate(node.outputs)
        if name
    }
    into: list[list[tuple[int, int, int]]] = [[] for _ in nodes]
    out_of: list[list[tuple[int, int, int]]] = [[] for _ in nodes]
    for index, node in enumerate(nodes):
        for place, name in enumerate((*node.inputs, *implicit[index])):
            if name in makers:
                maker, output = makers[name]
                into[index].append((maker, output, place))
                out_of[maker].append((index, output, place))
    return [
        TableFields(
            {
                0: Scalar("I", index),
                1: Numbers(_EDGE, [number for edge in sorted(into[index]) for number in edge]),
                2: Numbers(_EDGE, [number for edge in sorted(out_of[index]) for number in edge]),
            }
        )
        for index in range(len(nodes))
    ]

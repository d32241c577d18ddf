"""An ONNX model as frozen values, without protobuf and without numpy.

Field names are those of onnx.proto (IR version 14). Bulk data stays a memoryview into
whatever it was read from, so a value is as cheap as the bytes it points to.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.kernel_types import KernelTypes

Dim = int | str | None
"""A dimension: its size, the name of a symbol, or None if the model says nothing."""


class DataType(IntEnum):
    """TensorProto.DataType of onnx.proto."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28


class AttributeType(IntEnum):
    """AttributeProto.AttributeType of onnx.proto."""

    UNDEFINED = 0
    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE_PROTO = 13
    TYPE_PROTOS = 14


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dense tensor's element type (DataType number) and shape; shape None is unknown rank."""

    elem_type: int
    shape: tuple[Dim, ...] | None = None


@dataclass(frozen=True, slots=True)
class SparseTensorType:
    """A sparse tensor's element type and shape."""

    elem_type: int
    shape: tuple[Dim, ...] | None = None


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A sequence of `elem`; None if the model does not say of what."""

    elem: ValueType | None


@dataclass(frozen=True, slots=True)
class OptionalType:
    """A value of `elem` or nothing."""

    elem: ValueType | None


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from scalars of DataType `key_type` to `value`."""

    key_type: int
    value: ValueType | None


@dataclass(frozen=True, slots=True)
class OpaqueType:
    """A type that only its domain knows."""

    domain: str
    name: str


ValueType = TensorType | SparseTensorType | SequenceType | OptionalType | MapType | OpaqueType


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """A named value and its type, where the model gives one."""

    name: str
    type: ValueType | None = None
    doc_string: str = ""


@dataclass(frozen=True, slots=True)
class ExternalData:
    """The position of a tensor's bytes in an external file.

    Attributes:
        location: Path relative to the model's folder, as written; not yet checked.
        offset: Bytes from the start of that file.
        length: Bytes, or None for "to the end of the file".
        checksum: SHA-1 as written by the producer, or "".
    """

    location: str
    offset: int = 0
    length: int | None = None
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A constant: an initializer, or a tensor inside an attribute.

    Attributes:
        data: Little-endian elements in row-major order as TensorProto.raw_data has them
            (narrow types packed, low bits first: 4-bit types two and 2-bit types four to a
            byte, 6-bit types four to three bytes), the strings of a STRING tensor, or where
            they are stored in another file.
    """

    name: str
    data_type: int
    dims: tuple[int, ...]
    data: memoryview | tuple[bytes, ...] | ExternalData
    doc_string: str = ""


@dataclass(frozen=True, slots=True)
class SparseTensor:
    """A constant in coordinate form: SparseTensorProto."""

    values: Tensor
    indices: Tensor
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a node: AttributeProto.

    Attributes:
        value: int, float, bytes (STRING), Tensor, GraphDef, SparseTensor or a type, or a
            tuple of one of them, as `type` says; None if `ref_attr_name` is set.
        ref_attr_name: In a function body, the function's attribute that gives the value.
    """

    name: str
    type: AttributeType
    value: object
    ref_attr_name: str = ""
    doc_string: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """One operator call: NodeProto. An omitted optional input or output is the name ""."""

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""
    domain: str = ""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    doc_string: str = ""
    overload: str = ""
    metadata_props: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDef:
    """A graph as a model file gives it: GraphProto, nodes in topological order."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    initializers: Mapping[str, Tensor] = field(default_factory=dict)
    sparse_initializers: Mapping[str, SparseTensor] = field(default_factory=dict)
    value_info: Mapping[str, ValueInfo] = field(default_factory=dict)
    doc_string: str = ""
    metadata_props: Mapping[str, str] = field(default_factory=dict)
    _free_names: tuple[str, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def free_names(self) -> tuple[str, ...]:
        """Names that the graph uses and does not define, in order of first use.

        They are determined once: graphs that nest would otherwise be searched once for each graph
        around them.
        """
        if self._free_names is None:
            object.__setattr__(self, "_free_names", self._find_free_names())
        return self._free_names or ()

    def _find_free_names(self) -> tuple[str, ...]:
        defined = {info.name for info in self.inputs} | self.initializers.keys()
        defined |= self.sparse_initializers.keys()
        defined |= {name for node in self.nodes for name in node.outputs}
        used: dict[str, None] = {}
        for node in self.nodes:
            used.update(dict.fromkeys(node.inputs))
            for attribute in node.attributes.values():
                graphs = (
                    attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)
                )
                for graph in graphs:
                    if isinstance(graph, GraphDef):
                        used.update(dict.fromkeys(graph.free_names))
        used.update(dict.fromkeys(info.name for info in self.outputs))
        return tuple([name for name in used if name and name not in defined])


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDef:
    """A model-local function: FunctionProto, kept encoded until it is inlined."""

    name: str
    domain: str
    overload: str
    encoded: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A whole model file: ModelProto.

    Attributes:
        opset_imports: Domain ("" for ai.onnx) to version.
        model_version: None if the file does not set it.
        kernel_types: Facts by which kernels are found without schemas, of a file in the ORT
            format; its types and defaults are complete, too. None of another one.
    """

    graph: GraphDef
    ir_version: int
    opset_imports: Mapping[str, int]
    producer_name: str = ""
    producer_version: str = ""
    domain: str = ""
    model_version: int | None = None
    doc_string: str = ""
    metadata_props: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[FunctionDef, ...] = ()
    kernel_types: KernelTypes | None = None

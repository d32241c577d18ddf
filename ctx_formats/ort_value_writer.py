"""Tensors and types as tables of the ORT format: Tensor, SparseTensor and TypeInfo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.flatbuffer_writer import Numbers, Run, Scalar, TableFields
from ctx_formats.onnx_model import (
    DataType,
    ExternalData,
    MapType,
    SequenceType,
    TensorType,
)
from ctx_formats.ort_tensor_reader import LAST_TYPE
from ctx_formats.tensor_size import tensor_bytes

if TYPE_CHECKING:
    from ctx_formats.flatbuffer_writer import Field
    from ctx_formats.onnx_model import Dim, SparseTensor, Tensor, ValueType

_COMPLEX = (DataType.COMPLEX64, DataType.COMPLEX128)
_TENSOR, _SEQUENCE, _MAP = 1, 2, 3
_VALUE, _PARAM = 1, 2


def tensor_table(tensor: Tensor, field: str) -> TableFields:
    """A Tensor.

    Raises:
        FormatError: Its type is not in the format, or its data are not in memory.
    """
    require_element_type(tensor.data_type, field)
    fields: dict[int, Field] = {
        0: tensor.name.encode(),
        2: Numbers("q", tensor.dims),
        3: Scalar("i", tensor.data_type),
    }
    if tensor.doc_string:
        fields[1] = tensor.doc_string.encode()
    data = tensor.data
    if isinstance(data, ExternalData):
        raise FormatError(field, f"data in '{data.location}'", "data in memory")
    if isinstance(data, tuple):
        fields[5] = list(data)
    else:
        size = tensor_bytes(tensor.data_type, tensor.dims)
        if len(data) != size:
            raise FormatError(field, f"{len(data)} bytes", f"{size} bytes")
        fields[4] = Run(data)
    return TableFields(fields)


def sparse_table(sparse: SparseTensor, field: str) -> TableFields:
    """A SparseTensor.

    Raises:
        FormatError: As `tensor_table`.
    """
    return TableFields(
        {
            0: tensor_table(sparse.values, field),
            1: tensor_table(sparse.indices, field),
            2: Numbers("q", sparse.dims),
        }
    )


def type_table(value: ValueType, field: str) -> TableFields:
    """A TypeInfo.

    Raises:
        FormatError: The format has tensors, sequences and maps only.
    """
    match value:
        case TensorType():
            require_element_type(value.elem_type, field)
            fields: dict[int, Field] = {0: Scalar("i", value.elem_type)}
            if value.shape is not None:
                fields[1] = TableFields({0: [_dim_table(dim) for dim in value.shape]})
            return TableFields({1: Scalar("B", _TENSOR), 2: TableFields(fields)})
        case SequenceType() if value.elem is not None:
            element = TableFields({0: type_table(value.elem, field)})
            return TableFields({1: Scalar("B", _SEQUENCE), 2: element})
        case MapType() if value.value is not None:
            require_element_type(value.key_type, field)
            inner: dict[int, Field] = {0: Scalar("i", value.key_type)}
            inner[1] = type_table(value.value, field)
            return TableFields({1: Scalar("B", _MAP), 2: TableFields(inner)})
        case _:
            name = type(value).__name__.removesuffix("Type").lower()
            raise FormatError(field, f"type {name}", "a tensor, a sequence or a map")


def require_element_type(number: int, field: str) -> None:
    """Refuse element types that ONNX Runtime does not load from the format.

    Raises:
        FormatError: A type newer than FLOAT8E5M2FNUZ, such as INT4, or a complex one.
    """
    if not 0 < number <= LAST_TYPE or number in _COMPLEX:
        name = DataType(number).name if number in list(DataType) else str(number)
        raise FormatError(
            field, f"element type {name}", "a type of format version 6: FLOAT to FLOAT8E5M2FNUZ"
        )


def _dim_table(dim: Dim) -> TableFields:
    if isinstance(dim, int) and dim >= 0:
        return TableFields({0: TableFields({0: Scalar("B", _VALUE), 1: Scalar("q", dim)})})
    if isinstance(dim, str) and dim:
        return TableFields({0: TableFields({0: Scalar("B", _PARAM), 2: dim.encode()})})
    return TableFields({0: TableFields({})})

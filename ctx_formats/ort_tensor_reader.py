"""Tensors of an ORT format file as values over its bytes: tables Tensor and SparseTensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, SparseTensor, Tensor
from ctx_formats.ort_model_error import OrtModelError
from ctx_formats.tensor_size import element_count, tensor_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.flatbuffer import Table

LAST_TYPE = DataType.FLOAT8E5M2FNUZ
"""The newest element type of format version 6."""
_KNOWN = frozenset(DataType)
_SUFFIX = "Invalid ORT format model."
_MOST_ELEMENTS = (1 << 63) - 1


def read_tensor(table: Table, field: str, *, named: bool = True) -> Tensor:
    """A tensor; its data are a view of the file, or strings.

    Args:
        table: Tensor.
        field: For errors.
        named: Whether it must have a name.

    Raises:
        OrtModelError: Type, shape and data do not fit each other, or the data are elsewhere.
        FormatError: A part lies outside the file.
    """
    if named and not table.has(0):
        message = f"Initializer tensor name is missing. {_SUFFIX}"
        raise OrtModelError(f"{field}.name", "nothing", "a name", message)
    name = table.text(0, f"{field}.name")
    dims = table.longs(2, f"{field}.dims")
    data_type = table.integer(3, f"{field}.data_type")
    _check_shape(name, data_type, dims, field)
    doc_string = table.text(1, f"{field}.doc_string")
    if data_type == DataType.STRING:
        texts = table.runs(5, f"{field}.string_data")
        if len(texts) != element_count(dims):
            message = f"String data count mismatch for tensor '{name}'. {_SUFFIX}"
            expected = str(element_count(dims))
            raise OrtModelError(f"{field}.string_data", str(len(texts)), expected, message)
        return Tensor(name, data_type, dims, texts, doc_string)
    raw = table.octets(4, f"{field}.raw_data")
    size = tensor_bytes(data_type, dims)
    if size and not table.has(4):
        _refuse_missing(table, name, field)
    if len(raw) != size:
        message = (
            f"Initializer raw data size mismatch for tensor '{name}'. Expected {size} bytes but "
            f"found {len(raw)}. {_SUFFIX}"
        )
        raise OrtModelError(f"{field}.raw_data", f"{len(raw)} bytes", f"{size} bytes", message)
    return Tensor(name, data_type, dims, raw, doc_string)


def read_sparse_tensor(table: Table, field: str) -> SparseTensor:
    """A sparse tensor, its name that of its values.

    Raises:
        OrtModelError: As `read_tensor`, or a part is missing.
        FormatError: A part lies outside the file.
    """
    values, indices = table.table(0, f"{field}.values"), table.table(1, f"{field}.indices")
    if values is None or indices is None:
        message = f"Sparse initializer without values or indices. {_SUFFIX}"
        raise OrtModelError(field, "nothing", "values and indices", message)
    return SparseTensor(
        read_tensor(values, f"{field}.values"),
        read_tensor(indices, f"{field}.indices", named=False),
        table.longs(2, f"{field}.dims"),
    )


def _check_shape(name: str, data_type: int, dims: Sequence[int], field: str) -> None:
    label = (
        DataType(data_type).name if data_type <= LAST_TYPE and data_type in _KNOWN else "<unknown>"
    )
    if not 0 < data_type <= LAST_TYPE:
        message = f"Unsupported tensor data type '{label}' for tensor '{name}'. {_SUFFIX}"
        raise OrtModelError(
            f"{field}.data_type", str(data_type), f"1 to {LAST_TYPE}", message, is_argument=True
        )
    of = f"for tensor '{name}' with data type '{label}'. {_SUFFIX}"
    count = 1
    for dim in dims:
        if dim < 0:
            message = f"Invalid negative dimension {dim} {of}"
            raise OrtModelError(f"{field}.dims", str(dim), "0 or more", message, is_argument=True)
        count *= dim
        if count > _MOST_ELEMENTS:
            message = f"Tensor element count overflows size_t {of}"
            raise OrtModelError(
                f"{field}.dims", "too many elements", "fewer", message, is_argument=True
            )


def _refuse_missing(table: Table, name: str, field: str) -> None:
    """Refuse a tensor without data."""
    if table.long(6, f"{field}.external_data_offset", -1) >= 0:
        message = "Tensor has external data but a data reader was not provided."
        raise OrtModelError(field, f"external data of '{name}'", "raw data", message)
    message = f"Missing raw data for initializer. {_SUFFIX}"
    raise OrtModelError(f"{field}.raw_data", f"nothing for '{name}'", "data", message)

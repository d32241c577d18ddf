"""LoRA adapters in ONNX Runtime's file format, `.onnx_adapter`, read and written.

A FlatBuffer with the identifier "TORT": ONNX Runtime,
onnxruntime/lora/adapter_format/adapter_schema.fbs, format version 1.

    table Adapter { format_version: int; adapter_version: int; model_version: int;
                    parameters: [Parameter]; }
    table Parameter { name: string; dims: [int64]; data_type: TensorDataType;
                      raw_data: [uint8] (force_align: 8); }
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.flatbuffer import MAX_BYTES, Table
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType, Tensor
from ctx_formats.tensor_size import tensor_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT_VERSION = 1
_IDENTIFIER = b"TORT"
_MAX_RANK = 64
_KEPT = (
    *(DataType.FLOAT, DataType.UINT8, DataType.INT8, DataType.UINT16, DataType.INT16),
    *(DataType.INT32, DataType.INT64, DataType.FLOAT16, DataType.DOUBLE, DataType.UINT32),
    *(DataType.UINT64, DataType.BFLOAT16, DataType.FLOAT8E4M3FN, DataType.FLOAT8E4M3FNUZ),
    *(DataType.FLOAT8E5M2, DataType.FLOAT8E5M2FNUZ),
)
"""Types that ONNX Runtime takes from such a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """The content of an adapter file.

    Attributes:
        parameters: With names of their own, of rank 1 or more; their data are views of the file.
    """

    format_version: int = FORMAT_VERSION
    adapter_version: int = 0
    model_version: int = 0
    parameters: Sequence[Tensor] = ()


def read_adapter(data: memoryview) -> Adapter:
    """The adapter in a file's bytes; takes time in proportion to them at most.

    Raises:
        FormatError: They are none, or one of a newer format, or a parameter is damaged.
    """
    root = Table.root(data, _IDENTIFIER)
    version = root.integer(0, "format_version")
    if version != FORMAT_VERSION:
        raise FormatError("format_version", str(version), str(FORMAT_VERSION))
    tensors: dict[str, Tensor] = {}
    left = len(data)
    for table in root.tables(3, "parameters"):
        # Names and data may overlap in the file: all of them together are no longer than it is.
        parameter, read = _read_parameter(table, f"parameters[{len(tensors)}]", left)
        left -= read
        if parameter.name in tensors:
            raise FormatError(
                f"parameters[{len(tensors)}].name", repr(parameter.name), "a new name"
            )
        tensors[parameter.name] = parameter
    return Adapter(
        format_version=version,
        adapter_version=root.integer(1, "adapter_version"),
        model_version=root.integer(2, "model_version"),
        parameters=tuple(tensors.values()),
    )


def _read_parameter(table: Table, field: str, longest: int) -> tuple[Tensor, int]:
    """A parameter, and how many bytes its name and data take."""
    label = table.octets(0, f"{field}.name")
    if len(label) > longest:
        raise FormatError(f"{field}.name", f"{len(label)} bytes", f"{longest} at most")
    try:
        name = bytes(label).decode()
    except UnicodeDecodeError as exc:
        raise FormatError(f"{field}.name", f"{exc.reason} at byte {exc.start}", "UTF-8") from exc
    dims = table.longs(1, f"{field}.dims", most=_MAX_RANK)
    data_type = table.integer(2, f"{field}.data_type")
    raw = table.octets(3, f"{field}.raw_data")
    if len(label) + len(raw) > longest:
        raise FormatError(
            f"{field}.raw_data", f"{len(raw)} bytes that others have, too", f"{longest} at most"
        )
    _check(name, data_type, dims, len(raw), field=field)
    return Tensor(name, data_type, dims, raw), len(label) + len(raw)


def _check(name: str, data_type: int, dims: Sequence[int], size: int, *, field: str) -> None:
    """Refuse what ONNX Runtime does not take.

    Raises:
        FormatError: A type or shape that adapters do not have, or another number of bytes.
    """
    if data_type not in _KEPT:
        label = DataType(data_type).name if data_type in list(DataType) else str(data_type)
        raise FormatError(f"{field}.data_type", f"{label} of '{name}'", "a number with a type")
    if not dims:
        raise FormatError(f"{field}.dims", f"none of '{name}'", "one dimension or more")
    expected = tensor_bytes(data_type, dims)
    if size != expected:
        raise FormatError(
            f"{field}.raw_data", f"{size} bytes of '{name}' {list(dims)}", f"{expected} bytes"
        )


_VERSIONS = struct.Struct("<iii")
_ADAPTER_FIELDS = struct.pack("<HH4H", 12, 20, 4, 8, 12, 16)
_PARAMETER_FIELDS = struct.pack("<HH4H", 12, 20, 4, 8, 12, 16)
_TABLE_BYTES = 20


def write_adapter(adapter: Adapter) -> bytes:
    """The file of an adapter; ONNX Runtime 1.31.1 and this module read it.

    Its parts, in order: root offset and identifier, fields of Adapter, the Adapter, fields of
    Parameter, offsets of the parameters, and of each its table, name, dimensions and data.

    Raises:
        FormatError: A parameter of a type or shape that adapters do not have, or more than
            2 GiB.
    """
    out = bytearray(struct.pack("<I", 8 + len(_ADAPTER_FIELDS))) + _IDENTIFIER + _ADAPTER_FIELDS
    out += struct.pack("<i", len(_ADAPTER_FIELDS))
    versions = adapter.format_version, adapter.adapter_version, adapter.model_version
    try:
        out += _VERSIONS.pack(*versions)
    except struct.error as exc:
        raise FormatError("versions", str(versions), "integers of 32 bits") from exc
    out += struct.pack("<I", 4 + len(_PARAMETER_FIELDS))  # the vector is behind those
    fields = len(out)
    out += _PARAMETER_FIELDS
    out += struct.pack("<I", len(adapter.parameters))
    offsets = len(out)
    out += bytes(4 * len(adapter.parameters))
    for index, parameter in enumerate(adapter.parameters):
        place = offsets + 4 * index
        struct.pack_into("<I", out, place, len(out) - place)
        _write_parameter(out, parameter, fields, field=f"parameters[{index}]")
        if len(out) > MAX_BYTES:
            raise FormatError("file", f"more than {MAX_BYTES} bytes", "a smaller adapter")
    return bytes(out)


def _write_parameter(out: bytearray, parameter: Tensor, fields: int, *, field: str) -> None:
    raw = parameter.data
    size = len(raw) if isinstance(raw, memoryview) else -1
    _check(parameter.name, parameter.data_type, parameter.dims, size, field=field)
    assert isinstance(raw, memoryview), "text has no type of an adapter's, nor a size"
    table, name = len(out), parameter.name.encode()
    out += struct.pack("<i", table - fields) + bytes(_TABLE_BYTES - 4)
    struct.pack_into("<i", out, table + 12, parameter.data_type)
    struct.pack_into("<I", out, table + 4, len(out) - (table + 4))
    out += struct.pack("<I", len(name)) + name + b"\0"
    _align(out)
    struct.pack_into("<I", out, table + 8, len(out) - (table + 8))
    out += struct.pack(f"<I{len(parameter.dims)}q", len(parameter.dims), *parameter.dims)
    _align(out)
    struct.pack_into("<I", out, table + 16, len(out) - (table + 16))
    out += struct.pack("<I", len(raw))
    out += raw
    out += bytes(-len(out) % 4)


def _align(out: bytearray) -> None:
    """Fill up so that what follows a length, of 4 bytes, begins at a multiple of 8."""
    out += bytes((4 - len(out)) % 8)

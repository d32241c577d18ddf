"""Types as ONNX Runtime writes them: `tensor(float)`, `seq(tensor(int64))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import (
    DataType,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
)

if TYPE_CHECKING:
    from ctx_formats.onnx_model import ValueType

_IRREGULAR = {
    DataType.BFLOAT16: "bfloat16",
    DataType.FLOAT8E4M3FN: "float8e4m3fn",
    DataType.FLOAT8E4M3FNUZ: "float8e4m3fnuz",
    DataType.FLOAT8E5M2: "float8e5m2",
    DataType.FLOAT8E5M2FNUZ: "float8e5m2fnuz",
}


_ELEMENTS = {int(kind): _IRREGULAR.get(kind) or kind.name.lower() for kind in DataType}


def element_text(elem_type: int) -> str:
    """`float`, `int64`, ...; the number itself for one that ONNX does not define."""
    return _ELEMENTS.get(elem_type) or str(elem_type)


def type_text(value_type: ValueType | None) -> str:
    """The whole type; "" where it is not known."""
    if isinstance(value_type, TensorType):
        return f"tensor({element_text(value_type.elem_type)})"
    if isinstance(value_type, SparseTensorType):
        return f"sparse_tensor({element_text(value_type.elem_type)})"
    if isinstance(value_type, SequenceType):
        return f"seq({type_text(value_type.elem)})"
    if isinstance(value_type, OptionalType):
        return f"optional({type_text(value_type.elem)})"
    if isinstance(value_type, MapType):
        return f"map({element_text(value_type.key_type)},{type_text(value_type.value)})"
    if isinstance(value_type, OpaqueType):
        return f"opaque({value_type.domain},{value_type.name})"
    return ""

"""Which port of an OpenVINO model is which input or output of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_formats.errors import Reason
from ctx_formats.onnx_model import DataType, TensorType
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import ValueInfo
    from ort_lite.execution_provider import PartitionIo

ELEMENT_TYPES = {
    "boolean": DataType.BOOL,
    "f16": DataType.FLOAT16,
    "f32": DataType.FLOAT,
    "f64": DataType.DOUBLE,
    "i8": DataType.INT8,
    "i16": DataType.INT16,
    "i32": DataType.INT32,
    "i64": DataType.INT64,
    "u8": DataType.UINT8,
    "u16": DataType.UINT16,
    "u32": DataType.UINT32,
    "u64": DataType.UINT64,
}
"""OpenVINO's names of the element types that numpy can hold."""


class PortError(Exception):
    """The model's ports are not the partition's inputs and outputs; the text says how."""


def port_order(
    infos: Sequence[ValueInfo], ports: Sequence[Any], *, renamed: bool = False
) -> tuple[int, ...]:
    """Index of the port of each value, by name, with its type and rank compared.

    Args:
        infos: The partition's inputs or outputs.
        ports: The compiled model's.
        renamed: Whether to go by position where no name is known: models that were glued
            together have new names around an old payload, whose ports keep their order.

    Raises:
        PortError: A value has no port, or a port of another type, or a port is left over.
    """
    by_name = {name: i for i, port in enumerate(ports) for name in port.get_names()}
    if renamed and len(infos) == len(ports) and not any(i.name in by_name for i in infos):
        for info, port in zip(infos, ports, strict=True):
            _compare(info, port)
        return tuple(range(len(ports)))
    order = []
    for info in infos:
        index = by_name.get(info.name)
        if index is None:
            raise PortError(f"'{info.name}' is not in the compiled model ({sorted(by_name)})")
        _compare(info, ports[index])
        order.append(index)
    unused = set(range(len(ports))) - set(order)
    if unused:
        names = [sorted(ports[i].get_names()) for i in sorted(unused)]
        raise PortError(f"the compiled model has more: {names}")
    return tuple(order)


def import_order(
    io: PartitionIo, inputs: Sequence[Any], outputs: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The order for an imported model.

    Raises:
        InvalidGraph: Reason `shape`; the payload is for another graph.
    """
    try:
        return (
            port_order(io.inputs, inputs, renamed=True),
            port_order(io.outputs, outputs, renamed=True),
        )
    except PortError as exc:
        raise InvalidGraph(
            f"the payload does not fit its EPContext node: {exc} (reason: {Reason.SHAPE})",
            reason=Reason.SHAPE,
        ) from exc


def _compare(info: ValueInfo, port: Any) -> None:  # noqa: ANN401 - an SDK object
    if not isinstance(info.type, TensorType):
        return
    found = ELEMENT_TYPES.get(port.element_type.get_type_name())
    if found != info.type.elem_type:
        raise PortError(
            f"'{info.name}' is {port.element_type.get_type_name()} in the compiled model and "
            f"element type {info.type.elem_type} in the graph"
        )
    shape, partial = info.type.shape, port.partial_shape
    if shape is None or partial.rank.is_dynamic:
        return
    if partial.rank.get_length() != len(shape):
        raise PortError(f"'{info.name}' has rank {partial.rank.get_length()}, not {len(shape)}")
    for axis, (mine, theirs) in enumerate(zip(shape, partial, strict=True)):
        if isinstance(mine, int) and mine >= 0 and theirs.is_static and theirs.get_length() != mine:
            raise PortError(
                f"'{info.name}' has size {theirs.get_length()} in dimension {axis}, not {mine}"
            )

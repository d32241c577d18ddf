"""Ports of an OpenVINO model, and which is which input or output of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType, TensorType
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_formats.onnx_model import ValueInfo
    from eps.openvino.sdk.runtime import Model
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


WIDE = "i64"
"""The element type that OpenVINO's CPU plug-in holds in 32 bits."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a compiled model.

    Attributes:
        names: Names of its tensor; of several one is enough, see `Ports.index_of`.
        element_type: As OpenVINO calls it, for example "f32".
        shape: Sizes, None for a free one; None where not even their number is known.
    """

    names: frozenset[str]
    element_type: str
    shape: tuple[int | None, ...] | None

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return self.shape is not None and None not in self.shape


@dataclass(frozen=True, slots=True)
class Ports:
    """All inputs, or all outputs, in OpenVINO's order.

    Attributes:
        index_of: The index of the port that has a name, under any of its names; or None.
    """

    all: tuple[Port, ...]
    index_of: Callable[[str], int | None]


class PortError(Exception):
    """The model's ports are not the partition's inputs and outputs; the text says how."""


def port_order(
    infos: Sequence[ValueInfo], ports: Ports, *, renamed: bool = False
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
    indices = [ports.index_of(info.name) for info in infos]
    strange = all(index is None for index in indices)
    if renamed and strange and len(infos) == len(ports.all):
        indices = list(range(len(ports.all)))
    order = []
    for info, index in zip(infos, indices, strict=True):
        if index is None:
            known = sorted(name for port in ports.all for name in port.names)
            raise PortError(f"'{info.name}' is not in the compiled model ({known})")
        _compare(info, ports.all[index])
        order.append(index)
    unused = set(range(len(ports.all))) - set(order)
    if unused:
        names = [sorted(ports.all[i].names) for i in sorted(unused)]
        raise PortError(f"the compiled model has more: {names}")
    return tuple(order)


def import_order(io: PartitionIo, model: Model) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The order for an imported model.

    Raises:
        InvalidGraph: Reason `shape`; the payload is for another graph.
    """
    try:
        return (
            port_order(io.inputs, model.inputs, renamed=True),
            port_order(io.outputs, model.outputs, renamed=True),
        )
    except PortError as exc:
        raise InvalidGraph(
            f"the payload does not fit its EPContext node: {exc} (reason: {Reason.SHAPE})",
            reason=Reason.SHAPE,
        ) from exc


def _compare(info: ValueInfo, port: Port) -> None:
    if port.element_type not in ELEMENT_TYPES:
        raise PortError(f"'{info.name}' is {port.element_type} in the compiled model")
    if not isinstance(info.type, TensorType):
        return
    if ELEMENT_TYPES[port.element_type] != info.type.elem_type:
        raise PortError(
            f"'{info.name}' is {port.element_type} in the compiled model and "
            f"element type {info.type.elem_type} in the graph"
        )
    shape = info.type.shape
    if shape is None or port.shape is None:
        return
    if len(port.shape) != len(shape):
        raise PortError(f"'{info.name}' has rank {len(port.shape)}, not {len(shape)}")
    for axis, (mine, theirs) in enumerate(zip(shape, port.shape, strict=True)):
        if isinstance(mine, int) and mine >= 0 and theirs is not None and theirs != mine:
            raise PortError(f"'{info.name}' has size {theirs} in dimension {axis}, not {mine}")

"""Which port of a compiled model is which input or output of a partition.

A payload keeps its ports' names and order. Models that were glued together have new names around
an old payload, so that values without a known name go by position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType, TensorType
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_formats.onnx_model import ValueInfo


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a compiled model.

    Attributes:
        names: Names of its tensor; of several one is enough, see `Ports.index_of`.
        data_type: Number of the ONNX DataType; UNDEFINED for one that numpy cannot hold.
        shape: Sizes, with None or a name for a free one; None for an unknown rank.
    """

    names: frozenset[str]
    data_type: int
    shape: Sequence[int | str | None] | None

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)


@dataclass(frozen=True, slots=True)
class Ports:
    """All inputs, or all outputs, in the compiled model's order.

    Attributes:
        index_of: The index of the port that has a name, under any of its names; or None.
    """

    all: tuple[Port, ...]
    index_of: Callable[[str], int | None]

    @classmethod
    def by_name(cls, ports: Sequence[Port]) -> Ports:
        """Ports that list all their names."""
        return cls(tuple(ports), {n: i for i, port in enumerate(ports) for n in port.names}.get)


class PortError(Exception):
    """The model's ports are not the partition's inputs and outputs; the text says how."""


def port_order(
    infos: Sequence[ValueInfo], ports: Ports, *, renamed: bool = False
) -> tuple[int, ...]:
    """The index of each value's port, with types, ranks and known sizes compared.

    Args:
        infos: The partition's inputs or outputs.
        ports: The compiled model's.
        renamed: Whether to go by position where the model knows none of the names.

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


def import_order(infos: Sequence[ValueInfo], ports: Ports) -> tuple[int, ...]:
    """The same for an imported model, whose values go by position where it knows no name.

    Raises:
        InvalidGraph: Reason `shape`; the payload is for another graph.
    """
    try:
        return port_order(infos, ports, renamed=True)
    except PortError as exc:
        raise InvalidGraph(
            f"the payload does not fit its EPContext node: {exc} (reason: {Reason.SHAPE})",
            reason=Reason.SHAPE,
        ) from exc


def _compare(info: ValueInfo, port: Port) -> None:
    if port.data_type == DataType.UNDEFINED:
        raise PortError(f"'{info.name}' has no ONNX element type in the compiled model")
    if not isinstance(info.type, TensorType):
        return
    if port.data_type != info.type.elem_type:
        from ort_lite.model.type_text import element_text  # noqa: PLC0415 - lazy: rare

        raise PortError(
            f"'{info.name}' is {element_text(port.data_type)} in the compiled model and "
            f"{element_text(info.type.elem_type)} in the graph"
        )
    shape = info.type.shape
    if shape is None or port.shape is None:
        return
    if len(port.shape) != len(shape):
        raise PortError(f"'{info.name}' has rank {len(port.shape)}, not {len(shape)}")
    for axis, (declared, size) in enumerate(zip(shape, port.shape, strict=True)):
        known = isinstance(declared, int) and declared >= 0 and isinstance(size, int) and size >= 0
        if known and size != declared:
            raise PortError(f"'{info.name}' has size {size} in dimension {axis}, not {declared}")

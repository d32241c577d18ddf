"""Whether a payload's inputs and outputs are those that its EPContext node declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ctx_formats.onnx_model import TensorType
from ort_lite.model.tensor_values import numpy_dtype
from ort_lite.status import InvalidArgument, InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim, ValueInfo
    from ort_lite.execution_provider import PartitionIo

Signature = tuple[str, str, tuple["Dim", ...]]
"""Name, numpy's name of the element type, and shape of an input or output."""


def order_of(infos: Sequence[ValueInfo], ports: Sequence[Signature]) -> tuple[int, ...]:
    """The index of each value's port: by name, or by position where no name is known.

    Models that are glued together have new names around an old payload.

    Raises:
        InvalidGraph: Reason `shape`; the payload is for another graph.
    """
    names = {name: i for i, (name, _, _) in enumerate(ports)}
    if len(infos) != len(ports):
        raise _mismatch(f"{len(ports)} values where the node has {len(infos)}")
    if any(info.name in names for info in infos):
        missing = [info.name for info in infos if info.name not in names]
        if missing:
            raise _mismatch(f"no '{missing[0]}' among {sorted(names)}")
        order = tuple(names[info.name] for info in infos)
    else:
        order = tuple(range(len(ports)))
    for info, index in zip(infos, order, strict=True):
        _compare(info, ports[index])
    return order


def orders_of(
    io: PartitionIo, inputs: Sequence[Signature], outputs: Sequence[Signature]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`order_of` inputs and of outputs."""
    return order_of(io.inputs, inputs), order_of(io.outputs, outputs)


def _compare(info: ValueInfo, port: Signature) -> None:
    name, dtype, shape = port
    if not isinstance(info.type, TensorType):
        return
    try:
        declared = numpy_dtype(info.type.elem_type).name
    except InvalidArgument as exc:
        raise _mismatch(f"'{info.name}': {exc.message}") from exc
    if declared != dtype:
        raise _mismatch(f"'{name}' is {dtype}, and {declared} in the node")
    if info.type.shape is None:
        return
    if len(info.type.shape) != len(shape):
        raise _mismatch(f"'{name}' has rank {len(shape)}, and {len(info.type.shape)} in the node")
    for axis, (mine, theirs) in enumerate(zip(info.type.shape, shape, strict=True)):
        both = isinstance(mine, int) and isinstance(theirs, int) and mine >= 0 and theirs >= 0
        if both and mine != theirs:
            raise _mismatch(f"'{name}' has size {theirs} in dimension {axis}, not {mine}")


def _mismatch(problem: str) -> InvalidGraph:
    return InvalidGraph(
        f"the payload does not fit its EPContext node: {problem} (reason: {Reason.SHAPE})",
        reason=Reason.SHAPE,
    )

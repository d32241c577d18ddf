"""Initializers that the user has in memory, in place of the model's own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import ExternalData
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import ReadableBuffer

    from ctx_formats.onnx_model import GraphDef, Tensor
    from ort_lite.execution.values import OrtValue

    Buffer = ReadableBuffer


@dataclass(slots=True)
class AddedInitializers:
    """Weights passed to `SessionOptions`; the user's memory is kept alive, not copied.

    Attributes:
        overriding: In place of any initializer of that name.
        external: In place of initializers whose data is in a file.
        files: In place of files of external data, by location.
    """

    overriding: dict[str, OrtValue] = field(default_factory=dict)
    external: dict[str, OrtValue] = field(default_factory=dict)
    files: dict[str, memoryview] = field(default_factory=dict)

    def copy(self) -> AddedInitializers:
        """One that later additions to this do not reach."""
        return AddedInitializers(dict(self.overriding), dict(self.external), dict(self.files))

    def override(self, name: str, value: OrtValue) -> None:
        """Take one for any model that has an initializer `name`.

        Raises:
            InvalidArgument: There is one for that name.
        """
        _put(self.overriding, name, value)

    def supply(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Take some that the model must have, with external data.

        Raises:
            ValueError: The lists differ in length.
            InvalidArgument: There is one for a name.
        """
        if len(names) != len(values):
            raise ValueError(
                f"Expecting names and initializers of equal length: {len(names)} and {len(values)}"
            )
        for name, value in zip(names, values, strict=True):
            _put(self.external, name, value)

    def supply_files(
        self, names: Sequence[str], buffers: Sequence[Buffer], lengths: Sequence[int]
    ) -> None:
        """Take whole files of external data.

        Raises:
            ValueError: The lists differ in length, or a buffer is shorter than its length.
        """
        if not len(names) == len(buffers) == len(lengths):
            raise ValueError(
                "Expecting names, buffers and lengths of equal length: "
                f"{len(names)}, {len(buffers)} and {len(lengths)}"
            )
        for name, buffer, length in zip(names, buffers, lengths, strict=True):
            view = memoryview(buffer).cast("B").toreadonly()
            if not 0 <= length <= len(view):
                raise ValueError(f"{name}: the buffer has {len(view)} bytes, not {length}")
            self.files[name] = view[:length]

    def inject(self, graph: GraphDef) -> GraphDef:
        """`graph` with the initializers replaced; the texts are those of ONNX Runtime.

        Raises:
            Fail: An external one is not there or has no external data, or a shape or type
                differs from the model's.
        """
        replaced: dict[str, Tensor] = {}
        for name, value in self.external.items():
            known = graph.initializers.get(name)
            if known is None:
                raise Fail(f"Failed to find existing initializer with name {name}.")
            if not isinstance(known.data, ExternalData):
                raise Fail(f"Trying to replace non-external initializer {name} with external data")
            replaced[name] = _like(known, value)
        for name, value in self.overriding.items():
            if name in graph.initializers:
                replaced[name] = _like(graph.initializers[name], value)
        return (
            replace(graph, initializers={**graph.initializers, **replaced}) if replaced else graph
        )


def _put(place: dict[str, OrtValue], name: str, value: OrtValue) -> None:
    if name in place:
        raise InvalidArgument(f"An OrtValue for this name has already been added: {name}")
    place[name] = value


def _like(known: Tensor, value: OrtValue) -> Tensor:
    from ort_lite.model.tensor_values import from_numpy  # noqa: PLC0415 - lazy: reload

    tensor = from_numpy(value.numpy(), known.name)
    if tensor.dims != tuple(known.dims):
        raise Fail(
            "Replacement tensor's dimensions do not match. "
            f"{known.name} has {list(known.dims)}, given {list(tensor.dims)}"
        )
    if tensor.data_type != known.data_type:
        raise Fail(
            "Replacement tensor's data type does not match. "
            f"{known.name} has {known.data_type}, given {tensor.data_type} (TensorProto.DataType)"
        )
    return tensor

"""OrtValueVector: values in a row, as onnxruntime's binding gives and takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ort_lite.execution.values import OrtValue, array_at
from ort_lite.providers.memory_info import OrtDevice, require_host
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class OrtValueVector:
    """OrtValues in order; it grows at its end."""

    def __init__(self) -> None:
        """A vector without values."""
        self._values: list[OrtValue] = []

    @classmethod
    def of(cls, values: Iterable[OrtValue]) -> OrtValueVector:
        """One of these values."""
        made = cls()
        for value in values:
            made.push_back(value)
        return made

    def __len__(self) -> int:
        """How many there are."""
        return len(self._values)

    def __getitem__(self, index: int) -> OrtValue:
        """The value at `index`, from 0.

        Raises:
            IndexError: No value has that index.
        """
        if not 0 <= index < len(self._values):
            raise IndexError(f"index {index} of a vector of {len(self._values)} values")
        return self._values[index]

    def __iter__(self) -> Iterator[OrtValue]:
        """The values, in order."""
        return iter(self._values)

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:  # noqa: ANN401, FBT001, FBT002 - onnxruntime's signature
        """Append an OrtValue, or the memory of a DLPack capsule.

        Args:
            value: The one or the other.
            is_bool_tensor: Whether a capsule's elements, of uint8, are bools.

        Raises:
            TypeError: Neither.
        """
        if not isinstance(value, OrtValue):
            from ort_lite.execution.dlpack import from_capsule  # noqa: PLC0415 - lazy: rare

            value = OrtValue.holding(from_capsule(value, is_bool=is_bool_tensor))
        self._values.append(value)

    def push_back_batch(
        self,
        tensors: Sequence[object],
        addresses: Sequence[int],
        element_types: Sequence[Any],
        shapes: Sequence[Sequence[int]],
        devices: Sequence[OrtDevice],
    ) -> None:
        """Append memory that tensors of other libraries own, which the caller keeps alive.

        Args:
            tensors: The owners, of which only the number matters.
            addresses: Of their first elements, in host memory.
            element_types: numpy types.
            shapes: Of the tensors, whose elements are contiguous.
            devices: Where their memory is.

        Raises:
            BindingError: An address is 0, or a device is not the host; a RuntimeError, too.
            ValueError: The lists differ in length.
        """
        made = []
        for _, address, kind, shape, device in zip(
            tensors, addresses, element_types, shapes, devices, strict=True
        ):
            require_host(device, "addresses are those of tensors")
            if not address:
                raise BindingError("Pointer to data memory is not valid")
            made.append(OrtValue.holding(array_at(address, kind, shape)))
        self._values += made

    def reserve(self, count: int) -> None:
        """Nothing: a list needs no room beforehand."""

    def shrink_to_fit(self) -> None:
        """Nothing: a list gives room back on its own."""

    def element_type_at(self, index: int) -> int:
        """TensorProto.DataType of the value at `index`."""
        return self[index].element_type()

    def bool_tensor_indices(self) -> list[int]:
        """Which values are tensors of bool, which DLPack gives as uint8."""
        return [
            index
            for index, value in enumerate(self._values)
            if value.is_tensor() and value.data_type() == "tensor(bool)"
        ]

    def dlpack_at(self, index: int) -> Any:  # noqa: ANN401 - a capsule
        """The memory of the value at `index` as a DLPack capsule."""
        return self[index].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None) -> list[Any]:
        """The memory of all values as DLPack capsules, or what `to_tensor` makes of each."""
        capsules = [value.to_dlpack() for value in self._values]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]

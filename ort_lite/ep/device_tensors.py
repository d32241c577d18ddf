"""Tensors in the memory of a device, and what an execution provider does with them.

docs/adr/0043-device-tensors.md says how values, bindings and partitions use this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, runtime_checkable

from ctx_formats.lean_dataclass import dataclass
from ort_lite.ep.memory_use import ByteCounter
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ort_lite.ep.interface import Value

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlace:
    """The memory of a device, in onnxruntime's numbers.

    Attributes:
        name: Kind of device, as `OrtValue.device_name` returns it: "opencl", "gpu", "npu".
        device_type: 1 for a GPU, 3 for an NPU, as in OrtDevice.
        vendor_id: PCI id of the vendor.
        device_id: Number of the device among those of its kind.
        allocator: Name of the allocator, for OrtMemoryInfo.
    """

    name: str
    device_type: int
    vendor_id: int
    device_id: int
    allocator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCounts:
    """Copies of whole tensors and their sizes in bytes.

    Attributes:
        to_device: Copies from host memory.
        to_host: Copies to host memory.
        on_device: Copies within the memory of the device.
    """

    to_device: int = 0
    to_host: int = 0
    on_device: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    bytes_on_device: int = 0

    @property
    def host_copies(self) -> int:
        """Copies that the host has a part in."""
        return self.to_device + self.to_host


class DeviceTensor(ABC):
    """A tensor in the memory of a device: contiguous and row-major.

    Attributes:
        memory: The memory that has it.
        shape: Sizes of its dimensions.
        dtype: Type of its elements.
    """

    memory: DeviceMemory
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    def refuse_use(self) -> NoReturn:
        """Refuse the use of a tensor that was released: an error of the program, not of the device.

        Raises:
            BindingError: Always; a session does not fall back for it.
        """
        raise BindingError(f"the tensor {self.dtype}{list(self.shape)} is used after its release")

    @abstractmethod
    def numpy(self) -> Array:
        """A copy in host memory.

        Raises:
            BindingError: The tensor was released.
            EPFail: The device failed.
        """

    @abstractmethod
    def write(self, array: Array) -> None:
        """Overwrite the elements with those of a C-contiguous array of the same shape and type.

        Raises:
            BindingError: The tensor was released.
            EPFail: The device failed.
        """

    @abstractmethod
    def copy_from(self, source: DeviceTensor) -> None:
        """Overwrite the elements with those of a tensor of the same memory, shape and type.

        Raises:
            BindingError: A tensor was released.
            EPFail: The device failed.
        """

    def wait(self) -> None:  # noqa: B027 - most runs have ended when they return
        """Wait until everything that was enqueued on the tensor has run.

        Raises:
            EPFail: The device failed.
        """

    @abstractmethod
    def data_ptr(self) -> int:
        """The SDK's handle of the memory, or its address."""

    def dlpack_device(self) -> tuple[int, int]:
        """Device in DLPack's numbers.

        Raises:
            BindingError: DLPack cannot describe the memory.
        """
        raise BindingError(
            f"a tensor in the memory of {self.memory.place.name} is not one that DLPack shares; "
            "copy it with numpy()"
        )

    def host_view(self) -> Array | None:
        """An array over the same memory; None where the host does not reach it.

        Raises:
            BindingError: The tensor was released.
            EPFail: The device failed.
        """
        return None

    @abstractmethod
    def release(self) -> None:
        """Give the memory back now; without it, that happens with the last reference."""


class DeviceMemory(ABC):
    """The memory of one device, as one execution provider reaches it.

    Attributes:
        place: Its names and numbers.
        tensors: Size of the tensors that are there.
    """

    place: MemoryPlace

    def __init__(self) -> None:
        """Nothing is allocated yet."""
        self.tensors = ByteCounter()

    @abstractmethod
    def copy_counts(self) -> CopyCounts:
        """Copies that users asked for so far: `numpy()`, `update_inplace`, `copy_tensors`."""

    @abstractmethod
    def allocate(
        self, shape: Sequence[int], dtype: np.dtype[Any], *, zeros: bool = True
    ) -> DeviceTensor:
        """Memory for a tensor, whose elements are zeros, or anything without `zeros`.

        Raises:
            BindingError: It is larger than the device allows, or than what is free; nothing was
                allocated.
            EPFail: The device failed.
        """

    @abstractmethod
    def reaches(self, other: DeviceMemory) -> bool:
        """Whether tensors of `other` can be used here without a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LentMemory:
    """Memory of a device that another library lends, by a DLPack capsule.

    Attributes:
        device_type: DLDeviceType of dlpack.h: 4 for OpenCL.
        int_ptr: The SDK's handle or address; a cl_mem for OpenCL.
        offset: Where the tensor begins there, in bytes.
        owner: To be kept as long as the memory is used.
    """

    device_type: int
    int_ptr: int
    offset: int
    owner: object


Place = Any
"""A place for an output of a run: None for a new array, an array or a DeviceTensor to write to, or
a DeviceMemory to allocate in."""


@runtime_checkable
class SupportsDeviceMemory(Protocol):
    """An EP whose device has memory that tensors can stay in."""

    @property
    def memory(self) -> DeviceMemory | None:
        """The memory of its device; None for a device that reads and writes host memory."""
        ...


@runtime_checkable
class SupportsBoundRuns(Protocol):
    """A compiled partition that reads and writes memory that the caller has bound.

    Attributes:
        has_device_memory: Whether `memory` is some, so that other partitions read it there.
    """

    has_device_memory: bool

    def copy_counts(self) -> CopyCounts:
        """Copies of inputs and outputs that runs made so far, of the partition or all of its EP."""
        ...

    @property
    def memory(self) -> DeviceMemory | None:
        """The memory whose tensors its inputs may be; None for host memory alone."""
        ...

    def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> Sequence[Value]:
        """Compute the outputs; one that is not at its place is brought there by the caller.

        Args:
            inputs: Arrays as in `run`, or tensors of a memory that `memory` reaches.
            places: Of each output; the same tensor may be an input and an output.

        Raises:
            BindingError: A tensor was released.
            EPFail: The SDK or the device failed.
        """
        ...


@runtime_checkable
class SupportsMemoryLookup(Protocol):
    """A factory whose EP has devices with memory, which exists without a session, too."""

    def find_memory(self, device_name: str, device_id: int, vendor_id: int) -> DeviceMemory | None:
        """The memory of a device; None if the EP has no such device.

        Args:
            device_name: "opencl", "gpu" or "npu".
            device_id: Number of the device among those of its kind.
            vendor_id: PCI id of its vendor; negative for any.

        Raises:
            EPFail: The device cannot be opened.
        """
        ...


@runtime_checkable
class SupportsForeignTensors(Protocol):
    """A factory whose EP reads and writes tensors of another library, such as pyopencl."""

    def adopt(
        self, data: object, shape: Sequence[int] | None, dtype: np.dtype[Any] | None
    ) -> DeviceTensor | None:
        """A tensor in memory that `data` owns; None if `data` is of no library that it knows.

        Args:
            data: Of another library, or a LentMemory; stays alive as long as the tensor.
            shape: Sizes of dimensions, where `data` does not say.
            dtype: Type of elements, where `data` does not say.

        Raises:
            BindingError: It is not contiguous, or too small.
            EPFail: The SDK failed.
        """
        ...

    def lend(self, tensor: DeviceTensor, queue: object) -> object | None:
        """An array of the library over a tensor's memory; None for a tensor of another EP.

        Args:
            tensor: Lives as long as the array.
            queue: The library's, that the array is to use; None for none.

        Raises:
            BindingError: The queue does not reach the memory, the library is not there, or the
                tensor was released.
        """
        ...

"""OrtDevice and OrtMemoryInfo: a place for memory, in onnxruntime's words and numbers.

`ort_lite.execution.device_values` finds the memory that they describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ctx_formats.lean_dataclass import dataclass
from ort_lite.named_enum import NamedIntEnum
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep.device_tensors import MemoryPlace

_TYPES = {
    "cuda": 1,
    "cann": 3,
    "cpu": 0,
    "dml": 1,
    "webgpu": 1,
    "gpu": 1,
    "npu": 3,
    "opencl": 1,
}
"""OrtDevice::DeviceType of ortdevice.h by the name of a device; "opencl" is of ort_lite alone."""
KHRONOS = 0x10000
"""VK_VENDOR_ID_KHRONOS of Vulkan's registry: a device by its number in OpenCL's list."""


class OrtMemType(NamedIntEnum):
    """OrtMemType of onnxruntime_c_api.h."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = CPU_OUTPUT
    DEFAULT = 0


class OrtAllocatorType(NamedIntEnum):
    """OrtAllocatorType of onnxruntime_c_api.h."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtDeviceMemoryType(NamedIntEnum):
    """OrtDeviceMemoryType of onnxruntime_c_api.h."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(NamedIntEnum):
    """OrtMemoryInfoDeviceType of onnxruntime_c_api.h."""

    CPU = 0
    GPU = 1
    NPU = 3
    FPGA = 2


class OrtDeviceVendorId(NamedIntEnum):
    """PCI vendors, as OrtDevice::VendorIds of ortdevice.h."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


_VENDORS: Mapping[str, int] = {
    "cuda": OrtDeviceVendorId.NVIDIA,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "cann": OrtDeviceVendorId.HUAWEI,
    "opencl": KHRONOS,
}


class OrtDevice:
    """A place for memory: the kind of device, its number, its vendor, the kind of memory.

    `OrtDevice.make("cpu", 0)` is the usual way to one. The constructor has the two forms of
    onnxruntime's binding, `(type, memory, id)` and `(type, memory, vendor, id)`, and the one of
    its Python class, `(device)`.
    """

    __slots__ = ("_id", "_memory", "_type", "_vendor")

    def __init__(self, c_ort_device: OrtDevice | int, *numbers: int) -> None:
        """One with these numbers, or a copy.

        Raises:
            ValueError: The only argument is not an OrtDevice.
            TypeError: There are neither one, three nor four arguments.
        """
        if not numbers:
            if not isinstance(c_ort_device, OrtDevice):
                raise ValueError(
                    "`Provided object` needs to be of type "
                    "`onnxruntime.capi.onnxruntime_pybind11_state.OrtDevice`"
                )
            numbers = (c_ort_device.device_mem_type(), c_ort_device.device_vendor_id())
            numbers = (*numbers, c_ort_device.device_id())
            c_ort_device = c_ort_device.device_type()
        if len(numbers) not in (2, 3) or not isinstance(c_ort_device, int):
            raise TypeError(
                "OrtDevice expects (type, memory, id) or (type, memory, vendor, id), got "
                f"{(c_ort_device, *numbers)!r}"
            )
        self._type, self._memory, self._id = int(c_ort_device), numbers[0], numbers[-1]
        self._vendor = numbers[1] if len(numbers) == 3 else 0

    @staticmethod
    def make(
        ort_device_name: str, device_id: int, vendor_id: int | OrtDeviceVendorId = -1
    ) -> OrtDevice:
        """The place by the name of a device.

        Args:
            ort_device_name: cpu, cuda, cann, dml, gpu, npu, webgpu, or opencl.
            device_id: Number of the device among those of its kind.
            vendor_id: PCI id of its vendor; negative where the name alone says enough.

        Raises:
            BindingError: There is no such name; an InvalidArgument and a RuntimeError.
        """
        number = _TYPES.get(ort_device_name)
        if number is None:
            raise BindingError(
                f"Unsupported device type: {ort_device_name}. Supported: {', '.join(_TYPES)}"
            )
        vendor = int(vendor_id)
        if vendor < 0 or ort_device_name in ("dml", "opencl"):
            vendor = int(_VENDORS.get(ort_device_name, OrtDeviceVendorId.NONE))
        return OrtDevice(number, 0, vendor, device_id)

    @staticmethod
    def cpu() -> int:
        """Number of the host."""
        return 0

    @staticmethod
    def gpu() -> int:
        """The number by which onnxruntime knows GPUs."""
        return 1

    @staticmethod
    def cuda() -> int:
        """Number of GPUs of NVIDIA."""
        return 1

    @staticmethod
    def webgpu() -> int:
        """Number of GPUs that WebGPU runs on."""
        return 1

    @staticmethod
    def dml() -> int:
        """Number of GPUs that DirectML runs on."""
        return 4

    @staticmethod
    def fpga() -> int:
        """The number by which onnxruntime knows FPGAs."""
        return 2

    @staticmethod
    def npu() -> int:
        """The number by which onnxruntime knows NPUs."""
        return 3

    @staticmethod
    def cann() -> int:
        """Number of NPUs of Huawei."""
        return 3

    @staticmethod
    def default_memory() -> int:
        """Number of a device's own memory."""
        return 0

    def device_type(self) -> int:
        """The kind of device, in the numbers of `cpu()`, `gpu()` and the others."""
        return self._type

    def device_id(self) -> int:
        """The number of the device among those of its kind."""
        return self._id

    def device_vendor_id(self) -> int:
        """PCI id of the vendor; 0 if absent."""
        return self._vendor

    def device_mem_type(self) -> int:
        """The kind of memory: 0 for the device's own."""
        return self._memory

    vendor_id = device_vendor_id
    mem_type = device_mem_type

    def _get_c_device(self) -> Self:
        """The device itself; in onnxruntime, the object of the binding behind it."""
        return self


def is_host(place: OrtDevice | OrtMemoryInfo) -> bool:
    """Whether it is the host's memory."""
    return place.device_type() == OrtDevice.cpu()


def require_host(place: OrtDevice, what: str) -> None:
    """Refuse every place but host memory.

    Raises:
        BindingError: It is another one; an InvalidArgument and a RuntimeError.
    """
    if not is_host(place):
        raise BindingError(
            f"Can't allocate memory on the device (type {place.device_type()}) using this "
            f"package: {what} in host memory alone. Use device type 'cpu'."
        )


def read_device(
    device_type: str | OrtDevice, device_id: int = 0, vendor_id: int | OrtDeviceVendorId = -1
) -> OrtDevice:
    """The place under the name or object that the user gave for it.

    Raises:
        BindingError: The name is unknown.
    """
    if isinstance(device_type, OrtDevice):
        return device_type
    return OrtDevice.make(device_type, device_id, vendor_id)


_HOST = (0, OrtDeviceVendorId.NONE, OrtDeviceMemoryType.DEFAULT)
_NAMES: Mapping[str, tuple[int, int, OrtDeviceMemoryType]] = {
    "Cpu": _HOST,
    "Cuda": (1, OrtDeviceVendorId.NVIDIA, OrtDeviceMemoryType.DEFAULT),
    "CudaPinned": (1, OrtDeviceVendorId.NVIDIA, OrtDeviceMemoryType.HOST_ACCESSIBLE),
    "DML": (1, OrtDeviceVendorId.MICROSOFT, OrtDeviceMemoryType.DEFAULT),
    "Hip": (1, OrtDeviceVendorId.AMD, OrtDeviceMemoryType.DEFAULT),
    "HipPinned": (1, OrtDeviceVendorId.AMD, OrtDeviceMemoryType.HOST_ACCESSIBLE),
    "OpenCL": (1, KHRONOS, OrtDeviceMemoryType.DEFAULT),
    "OpenVINO_GPU": (1, OrtDeviceVendorId.INTEL, OrtDeviceMemoryType.DEFAULT),
    "OpenVINO_RT_NPU": (3, OrtDeviceVendorId.INTEL, OrtDeviceMemoryType.DEFAULT),
    "QnnHtpShared": (3, OrtDeviceVendorId.QUALCOMM, OrtDeviceMemoryType.HOST_ACCESSIBLE),
    "WebGPU_Buf": (1, OrtDeviceVendorId.NONE, OrtDeviceMemoryType.DEFAULT),
}
"""Kind of device, vendor and memory of the allocators that `OrtMemoryInfo(name, ...)` knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_type: int
    vendor_id: int
    device_mem_type: OrtDeviceMemoryType


class OrtMemoryInfo:
    """The place of memory and its allocator; sessions return those of host memory."""

    __slots__ = ("_facts",)

    def __init__(
        self,
        name: str | _Facts = "Cpu",
        allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
        device_id: int = 0,
        mem_type: OrtMemType = OrtMemType.DEFAULT,
    ) -> None:
        """One by the name of an allocator.

        Raises:
            BindingError: The name is not known; `create_v2` takes any.
        """
        if isinstance(name, _Facts):
            self._facts = name
            return
        if name not in _NAMES:
            raise BindingError("Specified device is not supported. Try CreateMemoryInfo_V2.")
        kind, vendor, memory = _NAMES[name]
        self._facts = _Facts(
            name=name,
            allocator_type=OrtAllocatorType(allocator_type),
            device_id=device_id if kind else 0,
            mem_type=OrtMemType(mem_type),
            device_type=kind,
            vendor_id=int(vendor),
            device_mem_type=memory,
        )

    @staticmethod
    def create_v2(  # noqa: PLR0913 - onnxruntime's signature
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
        /,
    ) -> OrtMemoryInfo:
        """One of any device; `name` is the caller's own, `alignment` in bytes has no effect.

        Raises:
            TypeError: `alignment` is negative.
        """
        if alignment < 0:
            raise TypeError(f"an alignment is not negative, got {alignment}")
        reachable = device_mem_type == OrtDeviceMemoryType.HOST_ACCESSIBLE
        return OrtMemoryInfo(
            _Facts(
                name=name,
                allocator_type=OrtAllocatorType(allocator_type),
                device_id=device_id,
                mem_type=OrtMemType.CPU if reachable else OrtMemType.DEFAULT,
                device_type=int(OrtMemoryInfoDeviceType(device_type)),
                vendor_id=int(vendor_id),
                device_mem_type=OrtDeviceMemoryType(device_mem_type),
            )
        )

    @property
    def name(self) -> str:
        """Name of the allocator."""
        return self._facts.name

    @property
    def allocator_type(self) -> OrtAllocatorType:
        """ORT_DEVICE_ALLOCATOR of what sessions give: there is no arena."""
        return self._facts.allocator_type

    @property
    def device_id(self) -> int:
        """Number of the device among those of its kind."""
        return self._facts.device_id

    @property
    def mem_type(self) -> OrtMemType:
        """The purpose of the memory."""
        return self._facts.mem_type

    @property
    def device_mem_type(self) -> OrtDeviceMemoryType:
        """Whether the host can reach it, where the device is not the host."""
        return self._facts.device_mem_type

    @property
    def device_vendor_id(self) -> int:
        """PCI id of the device's vendor; 0 if absent."""
        return self._facts.vendor_id

    def device_type(self) -> int:
        """The kind of device, in the numbers of OrtDevice."""
        return self._facts.device_type


def info_of(place: MemoryPlace) -> OrtMemoryInfo:
    """The memory of a device, by the name of its allocator."""
    return OrtMemoryInfo(place.allocator, device_id=place.device_id)

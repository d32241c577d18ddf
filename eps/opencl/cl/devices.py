"""What there is before anything is opened: drivers and their devices."""

from __future__ import annotations

import ctypes
from ctypes import c_size_t, c_void_p

from eps.opencl.cl.c_api import ALL_TYPES, DEVICE_NOT_FOUND, OpenCLError, listed
from eps.opencl.cl.loader import api, platform_handles

CPU, GPU = 1 << 1, 1 << 2
"""Bits of a device's type."""
_LOCAL = 1


class _Queried:
    """An object that lives as long as the process, and tells of itself."""

    __slots__ = ("_as_parameter_",)
    _teller: str

    def __init__(self, handle: int) -> None:
        self._as_parameter_ = c_void_p(handle)

    @property
    def handle(self) -> int:
        """OpenCL's own, for other libraries."""
        return self._as_parameter_.value or 0

    def __eq__(self, other: object) -> bool:
        """Whether both are the same object of the driver's."""
        return isinstance(other, type(self)) and self.handle == other.handle

    def __hash__(self) -> int:
        """By identity, as `==`."""
        return hash(self.handle)

    def _bytes(self, parameter: int) -> bytes:
        tell, size = getattr(api(), self._teller), c_size_t()
        tell(self, parameter, 0, None, size)
        value = ctypes.create_string_buffer(size.value)
        tell(self, parameter, size, value, None)
        return value.raw

    def _text(self, parameter: int) -> str:
        return self._bytes(parameter).rstrip(b"\0").decode(errors="replace").strip()

    def _number(self, parameter: int) -> int:
        return int.from_bytes(self._bytes(parameter), "little")


class Platform(_Queried):
    """A driver."""

    __slots__ = ()
    _teller = "clGetPlatformInfo"

    @property
    def version(self) -> str:
        """Of OpenCL, and what the vendor adds."""
        return self._text(0x0901)

    @property
    def name(self) -> str:
        """As the vendor gives it."""
        return self._text(0x0902)

    @property
    def vendor(self) -> str:
        """As it names itself."""
        return self._text(0x0903)

    def devices(self) -> list[Device]:
        """Every device; none for a driver without its hardware.

        Raises:
            OpenCLError: The driver fails otherwise.
        """
        try:
            handles = listed(api().clGetDeviceIDs, self, ALL_TYPES)
        except OpenCLError as exc:
            if exc.status == DEVICE_NOT_FOUND:
                return []
            raise
        return [Device(handle) for handle in handles]


def platforms() -> list[Platform]:
    """Every driver that was found.

    Raises:
        OpenCLError: There is none.
        EPFail: There is no loader.
    """
    return [Platform(handle) for handle in platform_handles()]


class Device(_Queried):
    """What computes."""

    __slots__ = ()
    _teller = "clGetDeviceInfo"

    @property
    def type(self) -> int:
        """Bits."""
        return self._number(0x1000)

    @property
    def max_compute_units(self) -> int:
        """Cores of a CPU."""
        return self._number(0x1002)

    @property
    def max_mem_alloc_size(self) -> int:
        """Bytes of the largest buffer."""
        return self._number(0x1010)

    @property
    def max_work_group_size(self) -> int:
        """Work-items of a group; a kernel may allow fewer."""
        return self._number(0x1004)

    @property
    def max_work_item_size(self) -> int:
        """Work-items of a group in the first dimension."""
        return c_size_t.from_buffer_copy(self._bytes(0x1005)).value

    @property
    def has_local_memory(self) -> bool:
        """Whether local memory is of its own, and not part of global memory."""
        return self._number(0x1022) == _LOCAL

    @property
    def local_mem_size(self) -> int:
        """Bytes of local memory for a work-group."""
        return self._number(0x1023)

    @property
    def native_vector_width_float(self) -> int:
        """Floats in a register; 0 where that means nothing."""
        return self._number(0x103A)

    @property
    def native_vector_width_int(self) -> int:
        """32-bit integers in a register; 0 where that means nothing."""
        return self._number(0x1038)

    @property
    def mem_base_addr_align(self) -> int:
        """Bits, of a buffer's parts."""
        return self._number(0x1019)

    @property
    def host_unified_memory(self) -> bool:
        """Whether it shares the host's memory."""
        return bool(self._number(0x1035))

    @property
    def name(self) -> str:
        """As the vendor gives it."""
        return self._text(0x102B)

    @property
    def vendor(self) -> str:
        """Who made the device."""
        return self._text(0x102C)

    @property
    def driver_version(self) -> str:
        """In the vendor's own form."""
        return self._text(0x102D)

    @property
    def version(self) -> str:
        """Of OpenCL, and what the vendor adds."""
        return self._text(0x102F)

    @property
    def extensions(self) -> str:
        """Names with blanks between them."""
        return self._text(0x1030)

    @property
    def uuid(self) -> bytes:
        """CL_DEVICE_UUID_KHR of cl_khr_device_uuid.

        Raises:
            OpenCLError: The device has none.
        """
        return self._bytes(0x106A)

    @property
    def chip(self) -> str:
        """Of a GPU, what its driver compiles for, as far as the name does not say it.

        NVIDIA's compute capability (cl_nv_device_attribute_query), Intel's IP version
        (cl_intel_device_attribute_query); AMD's devices have the chip for a name.
        """
        extensions = self.extensions.split()
        if "cl_nv_device_attribute_query" in extensions:
            return f"sm_{self._number(0x4000)}{self._number(0x4001)}"
        if "cl_intel_device_attribute_query" in extensions:
            return f"ip_{self._number(0x4250):x}"
        return ""

    @property
    def platform(self) -> Platform:
        """Its driver."""
        return Platform(self._number(0x1031))

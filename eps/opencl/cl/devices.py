"""Platforms and devices, as the OpenCL loader reports them."""

from __future__ import annotations

import ctypes
from ctypes import c_size_t, c_void_p

from eps.opencl.cl import constants as cl
from eps.opencl.cl.c_api import OpenCLError, list_handles
from eps.opencl.cl.loader import api, platform_handles


class _Queried:
    """A driver's object that lives as long as the process and has properties to query."""

    __slots__ = ("_as_parameter_",)
    _query: str

    def __init__(self, handle: int) -> None:
        self._as_parameter_ = c_void_p(handle)

    @property
    def handle(self) -> int:
        """The driver's handle as a number, for other libraries."""
        return self._as_parameter_.value or 0

    def __eq__(self, other: object) -> bool:
        """Whether both are the same object of the driver's."""
        return isinstance(other, type(self)) and self.handle == other.handle

    def __hash__(self) -> int:
        """By identity, as `==`."""
        return hash(self.handle)

    def _bytes(self, parameter: int) -> bytes:
        query, size = getattr(api(), self._query), c_size_t()
        query(self, parameter, 0, None, size)
        value = ctypes.create_string_buffer(size.value)
        query(self, parameter, size, value, None)
        return value.raw

    def _text(self, parameter: int) -> str:
        return self._bytes(parameter).rstrip(b"\0").decode(errors="replace").strip()

    def _number(self, parameter: int) -> int:
        return int.from_bytes(self._bytes(parameter), "little")


class Platform(_Queried):
    """An OpenCL platform: one vendor's driver."""

    __slots__ = ()
    _query = "clGetPlatformInfo"

    @property
    def version(self) -> str:
        """The OpenCL version, followed by the vendor's own text."""
        return self._text(cl.CL_PLATFORM_VERSION)

    @property
    def name(self) -> str:
        """The name that the vendor chose."""
        return self._text(cl.CL_PLATFORM_NAME)

    @property
    def vendor(self) -> str:
        """The vendor's own name."""
        return self._text(cl.CL_PLATFORM_VENDOR)

    def devices(self) -> list[Device]:
        """Every device; none for a driver without its hardware.

        Raises:
            OpenCLError: The driver fails otherwise.
        """
        try:
            handles = list_handles(api().clGetDeviceIDs, self, cl.CL_DEVICE_TYPE_ALL)
        except OpenCLError as exc:
            if exc.status == cl.CL_DEVICE_NOT_FOUND:
                return []
            raise
        return [Device(handle) for handle in handles]


def platforms() -> list[Platform]:
    """Every platform that the loader found.

    Raises:
        OpenCLError: There is none.
        EPFail: No loader was found.
    """
    return [Platform(handle) for handle in platform_handles()]


class Device(_Queried):
    """An OpenCL device of a platform."""

    __slots__ = ()
    _query = "clGetDeviceInfo"

    @property
    def type(self) -> int:
        """Bit field of CL_DEVICE_TYPE flags."""
        return self._number(cl.CL_DEVICE_TYPE)

    @property
    def max_compute_units(self) -> int:
        """Number of compute units, which are the cores of a CPU."""
        return self._number(cl.CL_DEVICE_MAX_COMPUTE_UNITS)

    @property
    def max_mem_alloc_size(self) -> int:
        """Size of the largest buffer in bytes."""
        return self._number(cl.CL_DEVICE_MAX_MEM_ALLOC_SIZE)

    @property
    def global_mem_size(self) -> int:
        """Size of the device's memory in bytes."""
        return self._number(cl.CL_DEVICE_GLOBAL_MEM_SIZE)

    @property
    def max_work_group_size(self) -> int:
        """Most work-items of a work-group; a kernel may allow fewer."""
        return self._number(cl.CL_DEVICE_MAX_WORK_GROUP_SIZE)

    @property
    def max_work_item_size(self) -> int:
        """Most work-items of a work-group in the first dimension."""
        return c_size_t.from_buffer_copy(self._bytes(cl.CL_DEVICE_MAX_WORK_ITEM_SIZES)).value

    @property
    def has_local_memory(self) -> bool:
        """Whether local memory is separate from global memory."""
        return self._number(cl.CL_DEVICE_LOCAL_MEM_TYPE) == cl.CL_LOCAL

    @property
    def local_mem_size(self) -> int:
        """Size of a work-group's local memory in bytes."""
        return self._number(cl.CL_DEVICE_LOCAL_MEM_SIZE)

    @property
    def divides_exactly_on_request(self) -> bool:
        """Whether -cl-fp32-correctly-rounded-divide-sqrt is an option of its compiler."""
        config = self._number(cl.CL_DEVICE_SINGLE_FP_CONFIG)
        return bool(config & cl.CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)

    @property
    def native_vector_width_float(self) -> int:
        """Floats in a vector register; 0 if the device reports none."""
        return self._number(cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT)

    @property
    def native_vector_width_int(self) -> int:
        """32-bit integers in a vector register; 0 if the device reports none."""
        return self._number(cl.CL_DEVICE_NATIVE_VECTOR_WIDTH_INT)

    @property
    def mem_base_addr_align(self) -> int:
        """Alignment of a sub-buffer's offset in bits."""
        return self._number(cl.CL_DEVICE_MEM_BASE_ADDR_ALIGN)

    @property
    def host_unified_memory(self) -> bool:
        """Whether the device shares the host's memory."""
        return bool(self._number(cl.CL_DEVICE_HOST_UNIFIED_MEMORY))

    @property
    def name(self) -> str:
        """The name that the vendor chose."""
        return self._text(cl.CL_DEVICE_NAME)

    @property
    def vendor(self) -> str:
        """The name of the device's vendor."""
        return self._text(cl.CL_DEVICE_VENDOR)

    @property
    def vendor_id(self) -> int:
        """PCI id of the vendor, or the vendor's own number."""
        return self._number(cl.CL_DEVICE_VENDOR_ID)

    @property
    def driver_version(self) -> str:
        """The driver's version in the vendor's own form."""
        return self._text(cl.CL_DRIVER_VERSION)

    @property
    def version(self) -> str:
        """The OpenCL version, followed by the vendor's own text."""
        return self._text(cl.CL_DEVICE_VERSION)

    @property
    def extensions(self) -> str:
        """Names of the supported extensions, separated by spaces."""
        return self._text(cl.CL_DEVICE_EXTENSIONS)

    @property
    def uuid(self) -> bytes:
        """CL_DEVICE_UUID_KHR of cl_khr_device_uuid.

        Raises:
            OpenCLError: The device has none.
        """
        return self._bytes(cl.CL_DEVICE_UUID_KHR)

    @property
    def chip(self) -> str:
        """The GPU architecture that the driver compiles for; "" if the device's name contains it.

        NVIDIA's compute capability (cl_nv_device_attribute_query), Intel's IP version
        (cl_intel_device_attribute_query); AMD's devices have the chip for a name.
        """
        extensions = self.extensions.split()
        if "cl_nv_device_attribute_query" in extensions:
            major = self._number(cl.CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV)
            return f"sm_{major}{self._number(cl.CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV)}"
        if "cl_intel_device_attribute_query" in extensions:
            return f"ip_{self._number(cl.CL_DEVICE_IP_VERSION_INTEL):x}"
        return ""

    @property
    def platform(self) -> Platform:
        """The platform that the device belongs to."""
        return Platform(self._number(cl.CL_DEVICE_PLATFORM))

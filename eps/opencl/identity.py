"""Which device and driver this is, from their own properties."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

from ctx_formats.identity import HardwareIdentity
from eps.opencl.c_api import SUCCESS, query_function

if TYPE_CHECKING:
    import pyopencl as cl

    from eps.opencl.device import Found

CODE_VERSION = "ort_lite-opencl-4"
"""Of generated code and payloads; a change makes older payloads unsupported."""

_DEVICE_UUID = 0x106A  # CL_DEVICE_UUID_KHR, cl_khr_device_uuid
_UUID_BYTES = 16
_ARCHITECTURE_SETTING = "CL_CONFIG_CPU_TARGET_ARCH"


def read_identity(found: Found) -> HardwareIdentity:
    """The identity of a device: no single property of OpenCL's tells machines apart.

    The device's name is that of a virtual CPU on many hosts; PoCL's version text has the
    LLVM CPU, Intel's UUID the CPU's signature and features.
    """
    device, platform = found.device, found.platform
    parts = [device.version.strip(), _device_uuid(device), _chosen_architecture()]
    return HardwareIdentity(
        vendor=device.vendor.strip(),
        device=f"{found.kind}: {device.name.strip()}",
        architecture="|".join(filter(None, parts)),
        driver_version=f"{platform.version.strip()}|{device.driver_version.strip()}",
        sdk_version=CODE_VERSION,
    )


def _chosen_architecture() -> str:
    """What the user made Intel's compiler build for; its UUID does not change with it."""
    return os.environ.get(_ARCHITECTURE_SETTING, "")


def _device_uuid(device: cl.Device) -> str:
    """Hexadecimal CL_DEVICE_UUID_KHR; "" where the device has none.

    pyopencl's get_info refuses the number (2026.1.4), so the loader is asked directly.
    """
    if "cl_khr_device_uuid" not in device.extensions:
        return ""
    query = query_function("clGetDeviceInfo")
    if query is None:
        return ""
    value = (ctypes.c_uint8 * _UUID_BYTES)()
    status = query(device.int_ptr, _DEVICE_UUID, _UUID_BYTES, value, None)
    return bytes(value).hex() if status == SUCCESS else ""

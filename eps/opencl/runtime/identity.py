"""Which device and driver this is, from their own properties."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctx_formats.identity import HardwareIdentity
from eps.opencl.cl.constants import CL_DEVICE_TYPE_GPU
from eps.opencl.code_version import CODE_VERSION
from eps.opencl.runtime.pocl_target import chosen_cpu

if TYPE_CHECKING:
    from eps.opencl.cl.devices import Device
    from eps.opencl.runtime.device import ListedDevice

_ARCHITECTURE_SETTING = "CL_CONFIG_CPU_TARGET_ARCH"


def read_identity(listed: ListedDevice) -> HardwareIdentity:
    """The identity of a device: no single property of OpenCL's distinguishes machines.

    The device's name is that of a virtual CPU on many hosts; PoCL's version text has the LLVM
    CPU, unless another one was chosen; Intel's UUID has the CPU's signature and features. A GPU's
    UUID is of the one that it is, not of its kind, and would keep a context from running on the
    next one.
    """
    device, platform = listed.device, listed.platform
    kind = device.chip if device.type & CL_DEVICE_TYPE_GPU else _device_uuid(device)
    parts = [device.version, chosen_cpu(device), kind, chosen_architecture()]
    return HardwareIdentity(
        vendor=device.vendor,
        device=f"{listed.kind}: {device.name}",
        architecture="|".join(filter(None, parts)),
        driver_version=f"{platform.version}|{device.driver_version}",
        sdk_version=CODE_VERSION,
    )


def chosen_architecture() -> str:
    """The CPU target that the user set for Intel's compiler; the UUID does not reflect it."""
    return os.environ.get(_ARCHITECTURE_SETTING, "")


def _device_uuid(device: Device) -> str:
    """Hexadecimal CL_DEVICE_UUID_KHR; "" where the device has none."""
    return device.uuid.hex() if "cl_khr_device_uuid" in device.extensions else ""

"""Which device and SDK this is, from the device's own properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.identity import HardwareIdentity
from eps.openvino.options import device_kind
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from eps.openvino.sdk.runtime import Runtime

_DRIVER = {"NPU": ("NPU_DRIVER_VERSION", "NPU_COMPILER_VERSION")}


def sdk_version(build: str) -> str:
    """`2026.4.1` of `2026.4.1-22982-e213a147257-releases/2026/4`."""
    return build.split("-")[0]


def read_identity(runtime: Runtime, device: str) -> HardwareIdentity:
    """The identity of `device` (a kind, or one of several: "GPU.1").

    Raises:
        EPFail: OpenVINO does not have the device; says which it has.
    """
    name, full_name = _physical(runtime, device)
    kind = device_kind(name)
    drivers = [runtime.property(name, key) for key in _DRIVER.get(kind, ())]
    architecture = runtime.property(name, "DEVICE_ARCHITECTURE") or kind
    return HardwareIdentity(
        vendor="Intel" if "intel" in full_name.lower() else "",
        device=f"{device}: {full_name}",
        architecture=architecture.removeprefix("NPU") or kind,
        driver_version="/".join(driver for driver in drivers if driver is not None),
        sdk_version=sdk_version(runtime.version),
        sdk_build=runtime.version,
    )


def _physical(runtime: Runtime, device: str) -> tuple[str, str]:
    """The device whose properties identify `device`, and its full name.

    AUTO runs on the first of its members that is there; the others need all of theirs.

    Raises:
        EPFail: A device that is needed is not there.
    """
    group, _, members = device.partition(":")
    names = members.split(",") if members else ["CPU" if device == "AUTO" else device]
    found = {name: runtime.property(name, "FULL_DEVICE_NAME") for name in names}
    here = [name for name in names if found[name] is not None]
    if not here or (group != "AUTO" and len(here) < len(names)):
        raise EPFail(missing_device(runtime, device))
    return here[0], str(found[here[0]])


def missing_device(runtime: Runtime, device: str) -> str:
    """Why a device cannot be used: what OpenVINO has, and what its plug-in answers."""
    try:
        available = ", ".join(runtime.available_devices()) or "none"
    except SDK_ERRORS as exc:
        available = f"unknown ({sdk_text(exc)})"
    return (
        f"OpenVINO has no device '{device}' on this machine; it has: {available}. "
        "ort-lite doctor looks for drivers and permissions."
    )

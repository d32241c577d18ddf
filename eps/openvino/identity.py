"""Which device and SDK this is, from the device's own properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_formats.identity import HardwareIdentity
from eps.openvino.options import device_kind
from eps.openvino.sdk_errors import PROPERTY_ERRORS, SDK_ERRORS, sdk_text
from ort_lite.status import EPFail

if TYPE_CHECKING:
    import openvino

_DRIVER = {"NPU": ("NPU_DRIVER_VERSION", "NPU_COMPILER_VERSION")}


def sdk_version(build: str) -> str:
    """`2026.4.1` of `2026.4.1-22982-e213a147257-releases/2026/4`."""
    return build.split("-")[0]


def read_identity(core: openvino.Core, device: str, build: str) -> HardwareIdentity:
    """The identity of `device` (a kind, or one of several: "GPU.1").

    Raises:
        EPFail: OpenVINO does not have the device; says which it has.
    """
    name, full_name = _physical(core, device)
    kind = device_kind(name)
    drivers = [_property(core, name, key) for key in _DRIVER.get(kind, ())]
    architecture = _property(core, name, "DEVICE_ARCHITECTURE")
    return HardwareIdentity(
        vendor="Intel" if "intel" in full_name.lower() else "",
        device=f"{device}: {full_name}",
        architecture=str(architecture or kind).removeprefix("NPU") or kind,
        driver_version="/".join(str(d) for d in drivers if d is not None),
        sdk_version=sdk_version(build),
        sdk_build=build,
    )


def _physical(core: openvino.Core, device: str) -> tuple[str, str]:
    """The device whose properties identify `device`, and its full name.

    AUTO runs on the first of its members that is there; the others need all of theirs.

    Raises:
        EPFail: A device that is needed is not there.
    """
    group, _, members = device.partition(":")
    names = members.split(",") if members else ["CPU" if device == "AUTO" else device]
    found = {name: _property(core, name, "FULL_DEVICE_NAME") for name in names}
    here = [name for name in names if found[name] is not None]
    if not here or (group != "AUTO" and len(here) < len(names)):
        raise EPFail(missing_device(core, device))
    return here[0], str(found[here[0]])


def missing_device(core: openvino.Core, device: str) -> str:
    """Why a device cannot be used: what OpenVINO has, and what its plug-in answers."""
    try:
        available = ", ".join(core.available_devices) or "none"
    except SDK_ERRORS as exc:
        available = f"unknown ({sdk_text(exc)})"
    return (
        f"OpenVINO has no device '{device}' on this machine; it has: {available}. "
        "ort-lite doctor looks for drivers and permissions."
    )


def _property(core: openvino.Core, device: str, key: str) -> Any:  # noqa: ANN401 - the SDK's own types
    """A property, or None where the plug-in does not report it."""
    try:
        return core.get_property(device, key)
    except PROPERTY_ERRORS:
        return None

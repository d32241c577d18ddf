"""Why an execution provider does not run on a device, as onnxruntime tells it."""

from __future__ import annotations

from enum import Enum, IntFlag
from typing import TYPE_CHECKING

from ort_lite.providers import catalog
from ort_lite.providers.devices import hardware_of
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from ort_lite.providers.devices import OrtHardwareDevice


class OrtDeviceEpIncompatibilityReason(IntFlag):
    """OrtDeviceEpIncompatibilityReason of onnxruntime_c_api.h."""

    __str__ = Enum.__str__  # as the binding's, where IntEnum gives the number
    __format__ = Enum.__format__

    NONE = 0
    DRIVER_INCOMPATIBLE = 1
    DEVICE_INCOMPATIBLE = 2
    MISSING_DEPENDENCY = 4
    UNKNOWN = -2147483648


def get_hardware_device_ep_incompatibility_details(
    ep_name: str, hardware_device: OrtHardwareDevice
) -> dict[str, int | str | None]:
    """Why `ep_name` does not run on a device that `get_hardware_devices` gave.

    Returns:
        `reasons_bitmask` of OrtDeviceEpIncompatibilityReason, 0 if it runs there; `notes`,
        what the execution provider says itself, or None; `error_code`, always 0.
        An execution provider that finds no device at all lacks its SDK or a driver; one that
        finds others does not know this device.

    Raises:
        BindingError: No such execution provider is installed; an InvalidArgument and a
            RuntimeError.
        EPFail: The distribution that provides it is broken.
    """
    entry = catalog.entries().get(ep_name)
    if entry is None:
        raise BindingError(f"No valid factory found for execution provider '{ep_name}'.")
    probe = entry.load().probe()
    reasons = OrtDeviceEpIncompatibilityReason
    if hardware_device in [hardware_of(device) for device in probe.devices]:
        found, notes = reasons.NONE, None
    elif probe.devices:
        found, notes = reasons.DEVICE_INCOMPATIBLE, probe.reason
    else:
        found, notes = reasons.MISSING_DEPENDENCY, probe.reason
    return {"reasons_bitmask": int(found), "notes": notes or None, "error_code": 0}
